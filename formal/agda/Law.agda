{-# OPTIONS --safe --without-K #-}

-- The law of a program: every value of below(n) has the chance 1/n, and no two draws have to do with each other.
--
-- `mean d g` is the mean of g over what d gives. Laws are compared by their means: two programs that give every g
-- the same mean have the same law (for the chance of one outcome, g is 1 there and 0 elsewhere).

open import Fractions using (Chances)
module Law (chances : Chances) where

open import Data.Bool using (true; false; if_then_else_)
open import Data.Nat using (zero; suc)
open import Relation.Binary.PropositionalEquality
open import Sampler
open Chances chances
open ≡-Reasoning

mean : ∀ {A : Set} → Draws A → (A → C) → C
mean (done a)      g = g a
mean (below k n d) g = inv n * count n (λ u → mean (d u) g)

mean-cong : ∀ {A : Set} (d : Draws A) {f g : A → C} → (∀ a → f a ≡ g a) → mean d f ≡ mean d g
mean-cong (done a)      e = e a
mean-cong (below k n d) e = cong (inv n *_) (count-cong n (λ u → mean-cong (d u) e))

mean->>= : ∀ {A B : Set} (d : Draws A) (f : A → Draws B) g → mean (d >>= f) g ≡ mean d (λ a → mean (f a) g)
mean->>= (done a)      f g = refl
mean->>= (below k n d) f g = cong (inv n *_) (count-cong n (λ u → mean->>= (d u) f g))

mean-+ : ∀ {A : Set} (d : Draws A) (f g : A → C) → mean d (λ a → f a + g a) ≡ mean d f + mean d g
mean-+ (done a)      f g = refl
mean-+ (below k n d) f g = begin
  inv n * count n (λ u → mean (d u) (λ a → f a + g a))
    ≡⟨ cong (inv n *_) (trans (count-cong n (λ u → mean-+ (d u) f g)) (count-+ n _ _)) ⟩
  inv n * (count n (λ u → mean (d u) f) + count n (λ u → mean (d u) g))
    ≡⟨ distribˡ (inv n) _ _ ⟩
  mean (below k n d) f + mean (below k n d) g ∎

*-swap : ∀ a b c → a * (b * c) ≡ b * (a * c)
*-swap a b c = trans (sym (*-assoc a b c)) (trans (cong (_* c) (*-comm a b)) (*-assoc b a c))

mean-* : ∀ {A : Set} (d : Draws A) c (f : A → C) → mean d (λ a → c * f a) ≡ c * mean d f
mean-* (done a)      c f = refl
mean-* (below k n d) c f = begin
  inv n * count n (λ u → mean (d u) (λ a → c * f a))
    ≡⟨ cong (inv n *_) (trans (count-cong n (λ u → mean-* (d u) c f)) (count-* n c _)) ⟩
  inv n * (c * count n (λ u → mean (d u) f))
    ≡⟨ *-swap (inv n) c _ ⟩
  c * mean (below k n d) f ∎

mean-0 : ∀ {A : Set} (d : Draws A) → mean d (λ _ → 0#) ≡ 0#
mean-0 (done a)      = refl
mean-0 (below k n d) = trans
  (cong (inv n *_) (trans (count-cong n (λ u → mean-0 (d u))) (trans (count-const n 0#) (·-0 n)))) (zeroʳ (inv n))

mean-· : ∀ {A : Set} (d : Draws A) n (f : A → C) → mean d (λ a → n · f a) ≡ n · mean d f
mean-· d zero    f = mean-0 d
mean-· d (suc n) f = trans (mean-+ d f (λ a → n · f a)) (cong (mean d f +_) (mean-· d n f))

mean-if : ∀ {A : Set} b (c d : Draws A) g → mean (if b then c else d) g ≡ (if b then mean c g else mean d g)
mean-if false c d g = refl
mean-if true  c d g = refl
