{-# OPTIONS --safe --without-K #-}

-- False: nothing is ever rejected.
-- Rejected: total (residual p q) != 

module NeverRejected where

open import Data.Nat using (_∸_)
open import Relation.Binary.PropositionalEquality
open import Sampler
open import Units

never : ∀ {n} (p q : Weights n) D → total p ≡ D → D ∸ total (kept p q) ≡ 0
never p q D whole = rejected-mass p q D whole
