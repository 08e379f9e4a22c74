{-# OPTIONS --safe --without-K #-}

-- Not proved: an assumption in a theorem's place.
-- Rejected: Cannot postulate

module Postulated where

open import Data.Nat using (_+_)
open import Relation.Binary.PropositionalEquality
open import Sampler

postulate assumed : ∀ {n} (p q : Weights n) x → kept p q x + residual q p x ≡ p x
