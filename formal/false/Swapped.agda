{-# OPTIONS --safe --without-K #-}

-- False: the residual of the wrong side, max(q - p, 0).
-- Rejected: p x != q x

module Swapped where

open import Data.Nat using (_+_)
open import Relation.Binary.PropositionalEquality
open import Sampler
open import Units

swapped : ∀ {n} (p q : Weights n) x → kept p q x + residual q p x ≡ p x
swapped p q x = emission p q x
