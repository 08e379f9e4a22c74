{-# OPTIONS --safe --without-K #-}

-- (6) Darts, as far as it goes: a dart thrown evenly at a box under which some tokens lie falls on each as on its units.
--
-- A box has `width` tokens and heights below `ceiling`; a hit is a height below p[token], p nowhere above the ceiling.
-- So a hit, whichever dart it is, has the law p. What is assumed and not proved: that darts of different boxes come
-- independently and evenly in time, so that the first hit is any of the hits; Poisson's numbers and tiers are not here.

open import Fractions using (Chances)
module Darts (chances : Chances) where

open import Data.Bool using (if_then_else_)
open import Data.Nat using (ℕ; suc; _<ᵇ_; _≤_; _∸_)
import Data.Nat.Properties as ℕₚ
open import Data.Fin using (Fin; zero; suc)
open import Data.Maybe using (Maybe; just; nothing)
open import Relation.Binary.PropositionalEquality
open import Law chances
open import Sampler
open import Step chances
open Chances chances
open ≡-Reasoning

-- One unit of width a token: below(width) is a token.
even : ∀ {n} → Weights n
even x = 1

-- A dart: its token, its height, and what it hits, if anything.
dart : ∀ {n} → Key → ℕ → Weights (suc n) → Draws (Maybe (Fin (suc n)))
dart {n} key ceiling p = below key (total {suc n} even) λ u → below key ceiling λ height →
  done (if height <ᵇ p (pick even u) then just (pick even u) else nothing)

-- What a dart brings, if a miss brings nothing.
hit : ∀ {n} → (Fin n → C) → Maybe (Fin n) → C
hit g nothing  = 0#
hit g (just x) = g x

hit-if : ∀ {n} (g : Fin n → C) b x → hit g (if b then just x else nothing) ≡ (if b then g x else 0#)
hit-if g Data.Bool.true  x = refl
hit-if g Data.Bool.false x = refl

sum-inv : ∀ {n} c (f : Fin n → C) → sum (λ x → c * f x) ≡ c * sum f
sum-inv {0}     c f = sym (zeroʳ c)
sum-inv {suc n} c f = trans (cong (c * f zero +_) (sum-inv c (λ x → f (suc x)))) (sym (distribˡ c (f zero) _))

-- The chance of hitting x is p[x] of all places in the box, width times ceiling: hits have the law p.
dart-law : ∀ {n} key ceiling (p : Weights (suc n)) → (∀ x → p x ≤ ceiling) → ∀ g →
  mean (dart key ceiling p) (hit g) ≡ inv (total {suc n} even) * (inv ceiling * sum (λ x → p x · g x))
dart-law {n} key ceiling p under g = cong (inv (total {suc n} even) *_) (begin
  count (total {suc n} even) (λ u → one (pick even u))
    ≡⟨ pick-law even one ⟩
  sum (λ x → 1 · one x)
    ≡⟨ sum-cong (λ x → trans (trans (+-comm (one x) 0#) (+-identityˡ (one x))) (cong (inv ceiling *_) (units x))) ⟩
  sum (λ x → inv ceiling * (p x · g x))
    ≡⟨ sum-inv (inv ceiling) (λ x → p x · g x) ⟩
  inv ceiling * sum (λ x → p x · g x) ∎)
  where
  one : Fin (suc n) → C
  one x = inv ceiling * count ceiling (λ height → hit g (if height <ᵇ p x then just x else nothing))
  units : ∀ x → count ceiling (λ height → hit g (if height <ᵇ p x then just x else nothing)) ≡ p x · g x
  units x = begin
    count ceiling (λ height → hit g (if height <ᵇ p x then just x else nothing))
      ≡⟨ count-cong ceiling (λ height → hit-if g (height <ᵇ p x) x) ⟩
    count ceiling (λ height → if height <ᵇ p x then g x else 0#)
      ≡⟨ count-verdict (p x) ceiling (g x) 0# ⟩
    (p x Data.Nat.⊓ ceiling) · g x + (ceiling ∸ p x) · 0#
      ≡⟨ cong₂ _+_ (cong (_· g x) (ℕₚ.m≤n⇒m⊓n≡m (under x))) (·-0 (ceiling ∸ p x)) ⟩
    p x · g x + 0#
      ≡⟨ trans (+-comm (p x · g x) 0#) (+-identityˡ (p x · g x)) ⟩
    p x · g x ∎
