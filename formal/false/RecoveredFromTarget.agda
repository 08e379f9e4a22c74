{-# OPTIONS --safe --without-K #-}

-- False: what a proposal leaves over is all of p, as if a rejected token were drawn from p again.
-- rejected: !=

module RecoveredFromTarget where

open import Data.Nat using (_+_)
open import Relation.Binary.PropositionalEquality
open import Units

wrong : ∀ {n} (p q : Weights n) x → kept p q x + p x ≡ p x
wrong p q x = emission p q x
