{-# OPTIONS --safe --without-K #-}

-- Where chances live: a commutative semiring in which every positive whole number has an inverse.
--
-- That is all the theorems need of the non-negative fractions, and asking for no more keeps them free of gcds.
-- Rational.agda shows that the standard library's rationals are such a thing, so nothing is assumed in the end.
-- This file has the sums: over the tokens, and over the values of `below`.

module Fractions where

open import Algebra.Structures using (IsCommutativeSemiring)
open import Data.Bool using (if_then_else_)
open import Data.Fin using (Fin; zero; suc)
open import Data.Nat using (ℕ; zero; suc; _<ᵇ_; _<_; _⊓_; _∸_) renaming (_+_ to _+ᴺ_)
open import Relation.Binary.PropositionalEquality
open import Sampler using (Weights; total)
open ≡-Reasoning

-- n times c, as c + … + c.
times : {C : Set} → (C → C → C) → C → ℕ → C → C
times _+_ 0# zero    c = 0#
times _+_ 0# (suc n) c = c + times _+_ 0# n c

record Chances : Set₁ where
  infixl 6 _+_
  infixl 7 _*_
  field
    C       : Set
    _+_ _*_ : C → C → C
    0# 1#   : C
    ring    : IsCommutativeSemiring _≡_ _+_ _*_ 0# 1#

    inv     : ℕ → C
    inverse : ∀ n → times _+_ 0# (suc n) (inv (suc n)) ≡ 1#

  infixr 8 _·_
  _·_ : ℕ → C → C
  _·_ = times _+_ 0#

  open IsCommutativeSemiring ring public
    using (+-assoc; +-comm; +-identityˡ; *-assoc; *-comm; *-identityˡ; zeroˡ; zeroʳ; distribˡ; distribʳ)

  +-middle : ∀ a b c d → (a + b) + (c + d) ≡ (a + c) + (b + d)
  +-middle a b c d = begin
    (a + b) + (c + d)  ≡⟨ +-assoc a b (c + d) ⟩
    a + (b + (c + d))  ≡⟨ cong (a +_) (sym (+-assoc b c d)) ⟩
    a + ((b + c) + d)  ≡⟨ cong (λ t → a + (t + d)) (+-comm b c) ⟩
    a + ((c + b) + d)  ≡⟨ cong (a +_) (+-assoc c b d) ⟩
    a + (c + (b + d))  ≡⟨ sym (+-assoc a c (b + d)) ⟩
    (a + c) + (b + d)  ∎

  ·-0 : ∀ n → n · 0# ≡ 0#
  ·-0 zero    = refl
  ·-0 (suc n) = trans (+-identityˡ (n · 0#)) (·-0 n)

  ·-+ : ∀ n c d → n · (c + d) ≡ n · c + n · d
  ·-+ zero    c d = sym (+-identityˡ 0#)
  ·-+ (suc n) c d = trans (cong (c + d +_) (·-+ n c d)) (+-middle c d (n · c) (n · d))

  +-· : ∀ m n c → (m +ᴺ n) · c ≡ m · c + n · c
  +-· zero    n c = sym (+-identityˡ (n · c))
  +-· (suc m) n c = trans (cong (c +_) (+-· m n c)) (sym (+-assoc c (m · c) (n · c)))

  *-· : ∀ n c d → c * (n · d) ≡ n · (c * d)
  *-· zero    c d = zeroʳ c
  *-· (suc n) c d = trans (distribˡ c d (n · d)) (cong (c * d +_) (*-· n c d))

  ·-* : ∀ n c d → (n · c) * d ≡ n · (c * d)
  ·-* zero    c d = zeroˡ d
  ·-* (suc n) c d = trans (distribʳ d c (n · c)) (cong (c * d +_) (·-* n c d))

  -- n times an n-th is the whole, for n above 0 …
  cancel : ∀ {n} → 0 < n → ∀ c → n · (inv n * c) ≡ c
  cancel {suc n} _ c = trans (sym (·-* (suc n) (inv (suc n)) c)) (trans (cong (_* c) (inverse n)) (*-identityˡ c))

  -- … and so is an n-th of n times.
  cancel′ : ∀ {n} → 0 < n → ∀ c → inv n * (n · c) ≡ c
  cancel′ {n} n>0 c = trans (*-· n (inv n) c) (cancel n>0 c)

  -- Sums over the tokens.
  sum : ∀ {n} → (Fin n → C) → C
  sum {zero}  f = 0#
  sum {suc n} f = f zero + sum (λ x → f (suc x))

  sum-cong : ∀ {n} {f g : Fin n → C} → (∀ x → f x ≡ g x) → sum f ≡ sum g
  sum-cong {zero}  e = refl
  sum-cong {suc n} e = cong₂ _+_ (e zero) (sum-cong (λ x → e (suc x)))

  sum-+ : ∀ {n} (f g : Fin n → C) → sum (λ x → f x + g x) ≡ sum f + sum g
  sum-+ {zero}  f g = sym (+-identityˡ 0#)
  sum-+ {suc n} f g = trans (cong (f zero + g zero +_) (sum-+ (λ x → f (suc x)) (λ x → g (suc x))))
                            (+-middle (f zero) (g zero) _ _)

  sum-0 : ∀ {n} {f : Fin n → C} → (∀ x → f x ≡ 0#) → sum f ≡ 0#
  sum-0 {zero}  e = refl
  sum-0 {suc n} e = trans (cong₂ _+_ (e zero) (sum-0 (λ x → e (suc x)))) (+-identityˡ 0#)

  -- One number, weighed by all tokens.
  sum-const : ∀ {n} (w : Weights n) c → sum (λ x → w x · c) ≡ total w · c
  sum-const {zero}  w c = refl
  sum-const {suc n} w c = trans (cong (w zero · c +_) (sum-const (λ x → w (suc x)) c)) (sym (+-· (w zero) _ c))

  -- Sums over the values of below(n).
  count : ℕ → (ℕ → C) → C
  count zero    f = 0#
  count (suc n) f = f 0 + count n (λ u → f (suc u))

  count-cong : ∀ n {f g : ℕ → C} → (∀ u → f u ≡ g u) → count n f ≡ count n g
  count-cong zero    e = refl
  count-cong (suc n) e = cong₂ _+_ (e 0) (count-cong n (λ u → e (suc u)))

  count-+ : ∀ n (f g : ℕ → C) → count n (λ u → f u + g u) ≡ count n f + count n g
  count-+ zero    f g = sym (+-identityˡ 0#)
  count-+ (suc n) f g = trans (cong (f 0 + g 0 +_) (count-+ n (λ u → f (suc u)) (λ u → g (suc u))))
                              (+-middle (f 0) (g 0) _ _)

  count-* : ∀ n c (f : ℕ → C) → count n (λ u → c * f u) ≡ c * count n f
  count-* zero    c f = sym (zeroʳ c)
  count-* (suc n) c f = trans (cong (c * f 0 +_) (count-* n c (λ u → f (suc u)))) (sym (distribˡ c (f 0) _))

  count-const : ∀ n c → count n (λ _ → c) ≡ n · c
  count-const zero    c = refl
  count-const (suc n) c = cong (c +_) (count-const n c)

  -- The first m values, and the k after them.
  count-split : ∀ m k (a b : ℕ → C) →
    count (m +ᴺ k) (λ u → if u <ᵇ m then a u else b u) ≡ count m a + count k (λ u → b (m +ᴺ u))
  count-split zero    k a b = sym (+-identityˡ _)
  count-split (suc m) k a b = trans (cong (a 0 +_) (count-split m k (λ u → a (suc u)) (λ u → b (suc u))))
                                    (sym (+-assoc (a 0) _ _))

  -- Of q coins, those below p: min(p, q). The others: max(q - p, 0).
  count-verdict : ∀ p q a b → count q (λ u → if u <ᵇ p then a else b) ≡ (p ⊓ q) · a + (q ∸ p) · b
  count-verdict zero    q       a b = trans (count-const q b) (sym (+-identityˡ (q · b)))
  count-verdict (suc p) zero    a b = sym (+-identityˡ 0#)
  count-verdict (suc p) (suc q) a b = trans (cong (a +_) (count-verdict p q a b)) (sym (+-assoc a _ _))
