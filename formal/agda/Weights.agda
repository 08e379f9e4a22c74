{-# OPTIONS --safe --without-K #-}

-- Weights in whole units: definitions alone, which theorems and compiled program share.
--
-- A distribution that ships is a vector of whole multiples of 2^-50 that adds up to exactly 1. Here it is what it
-- is made of: naturals over one denominator D. Subtraction of naturals is truncated, so `p ∸ q` is max(p - q, 0),
-- to the bit as the code has it. D is any natural; 2^50 is one of them.

module Weights where

open import Data.Fin.Base using (Fin; zero; suc)
open import Data.Nat.Base using (ℕ; zero; suc; _+_; _∸_; _⊓_)

-- A weight a token, and their total.
Weights : ℕ → Set
Weights n = Fin n → ℕ

total : ∀ {n} → Weights n → ℕ
total {zero}  w = 0
total {suc n} w = w zero + total (λ x → w (suc x))

-- What a proposal brings: q(x) min(1, p(x) / q(x)).
kept : ∀ {n} → Weights n → Weights n → Weights n
kept p q x = p x ⊓ q x

-- What a recovered token is drawn from: max(p - q, 0), not normalised.
residual : ∀ {n} → Weights n → Weights n → Weights n
residual p q x = p x ∸ q x
