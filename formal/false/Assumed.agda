{-# OPTIONS --safe --without-K #-}

-- Assumed, not proved.
-- rejected: (?i)postulate.*safe

module Assumed where

open import Relation.Binary.PropositionalEquality
open import Units

postulate wrong : ∀ {n} (p q : Weights n) x → kept p q x ≡ p x
