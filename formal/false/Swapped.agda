{-# OPTIONS --safe --without-K #-}

-- False: max(q - p, 0) in place of max(p - q, 0).
-- rejected: (q x !=< p x|p x !=< q x|q x != p x|p x != q x)

module Swapped where

open import Data.Nat using (_+_)
open import Relation.Binary.PropositionalEquality
open import Units

wrong : ∀ {n} (p q : Weights n) x → kept p q x + residual q p x ≡ p x
wrong p q x = emission p q x
