{-# OPTIONS --safe --without-K #-}

-- False, at 2^50: a coin equal to p keeps the proposal.
-- Rejected: recovered != accepted

module KeptAtTheBorder where

open import Data.Fin using (Fin; zero; suc)
open import Data.Nat using (ℕ)
open import Data.Product using (proj₁)
open import Relation.Binary.PropositionalEquality
open import Sampler

p q : Weights 2
p zero    = 5
p (suc _) = 1125899906842619
q zero    = 8
q (suc _) = 1125899906842616

coins : ∀ {A : Set} → ℕ → Draws A → A
coins u (done a)         = a
coins u (below k n next) = coins 0 (next u)

border : proj₁ (coins 5 (verdict 0 p q zero)) ≡ accepted
border = refl
