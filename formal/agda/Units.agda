{-# OPTIONS --safe --without-K #-}

-- The two identities the sampler rests on, in whole units.
--
-- A distribution that ships is a vector of whole multiples of 2^-50 that adds up to exactly 1. Here it is what it
-- is made of: naturals over one denominator D. Subtraction of naturals is truncated, so `p ∸ q` is max(p - q, 0),
-- to the bit as the code has it. D is any natural; 2^50 is one of them. Sampler.agda has the definitions.

module Units where

open import Data.Fin using (Fin; zero; suc)
open import Data.Nat using (ℕ; zero; suc; _+_; _∸_; _⊓_)
open import Data.Nat.Properties
open import Relation.Binary.PropositionalEquality
open import Sampler
open ≡-Reasoning

-- (1) Pointwise emission: what is kept and what the residual adds are p, token for token.
emission : ∀ {n} (p q : Weights n) x → kept p q x + residual p q x ≡ p x
emission p q x = trans (cong (_+ (p x ∸ q x)) (⊓-comm (p x) (q x))) (m⊓n+n∸m≡n (q x) (p x))

total-cong : ∀ {n} {v w : Weights n} → (∀ x → v x ≡ w x) → total v ≡ total w
total-cong {zero}  e = refl
total-cong {suc n} e = cong₂ _+_ (e zero) (total-cong (λ x → e (suc x)))

middle : ∀ a b c d → (a + b) + (c + d) ≡ (a + c) + (b + d)
middle a b c d = begin
  (a + b) + (c + d)  ≡⟨ +-assoc a b (c + d) ⟩
  a + (b + (c + d))  ≡⟨ cong (a +_) (sym (+-assoc b c d)) ⟩
  a + ((b + c) + d)  ≡⟨ cong (λ t → a + (t + d)) (+-comm b c) ⟩
  a + ((c + b) + d)  ≡⟨ cong (a +_) (+-assoc c b d) ⟩
  a + (c + (b + d))  ≡⟨ sym (+-assoc a c (b + d)) ⟩
  (a + c) + (b + d)  ∎

total-+ : ∀ {n} (v w : Weights n) → total (λ x → v x + w x) ≡ total v + total w
total-+ {zero}  v w = refl
total-+ {suc n} v w = trans
  (cong (v zero + w zero +_) (total-+ (λ x → v (suc x)) (λ x → w (suc x))))
  (middle (v zero) (w zero) _ _)

total-emission : ∀ {n} (p q : Weights n) → total (kept p q) + total (residual p q) ≡ total p
total-emission p q = trans (sym (total-+ (kept p q) (residual p q))) (total-cong (emission p q))

-- (2) The rejected mass is Z: of D units, those that no proposal keeps are as many as the residual has.
rejected-mass : ∀ {n} (p q : Weights n) D → total p ≡ D → D ∸ total (kept p q) ≡ total (residual p q)
rejected-mass p q D whole = trans
  (cong (_∸ total (kept p q)) (sym (trans (total-emission p q) whole)))
  (m+n∸m≡n (total (kept p q)) (total (residual p q)))

-- The same seen from the draft: with equal totals, p exceeds q by as much as q exceeds p (total variation).
symmetric : ∀ {n} (p q : Weights n) → total p ≡ total q → total (residual p q) ≡ total (residual q p)
symmetric p q e = +-cancelˡ-≡ (total (kept p q)) (begin
  total (kept p q) + total (residual p q)  ≡⟨ total-emission p q ⟩
  total p                                  ≡⟨ e ⟩
  total q                                  ≡⟨ sym (total-emission q p) ⟩
  total (kept q p) + total (residual q p)  ≡⟨ cong (_+ total (residual q p)) (total-cong (λ x → ⊓-comm (q x) (p x))) ⟩
  total (kept p q) + total (residual q p)  ∎)

-- A total of 0 leaves no token a weight.
total-0 : ∀ {n} (w : Weights n) → total w ≡ 0 → ∀ x → w x ≡ 0
total-0 {suc n} w e zero    = m+n≡0⇒m≡0 (w zero) e
total-0 {suc n} w e (suc x) = total-0 (λ y → w (suc y)) (m+n≡0⇒n≡0 (w zero) e) x
