{-# OPTIONS --safe --without-K #-}

-- False: a step has the draft's law.
-- Rejected: p Data.Fin.Base.Fin.zero != q Data.Fin.Base.Fin.zero

module DraftsLaw where

open import Fractions using (Chances)
open import Relation.Binary.PropositionalEquality
open import Sampler

module _ (chances : Chances) where
  open Chances chances
  open import Law chances
  open import Step chances

  drafts : ∀ {n} D position (p q : Weights _) → total p ≡ D → total q ≡ D → ∀ g →
    mean (step {n} D position p q) g ≡ inv D * sum (λ x → q x · g x)
  drafts D position p q p-whole q-whole g = step-law D position p q p-whole q-whole g
