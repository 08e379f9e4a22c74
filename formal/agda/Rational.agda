{-# OPTIONS --safe --without-K #-}

-- The standard library's rationals are what the theorems ask of chances (Fractions.agda), so nothing stays assumed.

module Rational where

open import Algebra.Structures using (IsCommutativeRing)
open import Data.Integer as ℤ using (+_)
import Data.Integer.Properties as ℤₚ
open import Data.Nat as ℕ using (ℕ; zero; suc)
import Data.Nat.Properties as ℕₚ
open import Data.Rational
open import Data.Rational.Properties
import Data.Rational.Unnormalised as ℚᵘ
import Data.Rational.Unnormalised.Properties as ℚᵘₚ
open import Fractions using (Chances; times)
open import Relation.Binary.PropositionalEquality

-- An n-th; of n = 0, anything.
part : ℕ → ℚ
part zero    = 0ℚ
part (suc n) = + 1 / suc n

whole : ℕ → ℚ
whole zero    = 0ℚ
whole (suc n) = 1ℚ + whole n

times-* : ∀ n c → times _+_ 0ℚ n c ≡ whole n * c
times-* zero    c = sym (*-zeroˡ c)
times-* (suc n) c = trans (cong₂ _+_ (sym (*-identityˡ c)) (times-* n c)) (sym (*-distribʳ-+ c 1ℚ (whole n)))

numeral : ∀ n → toℚᵘ (whole n) ℚᵘ.≃ ℚᵘ.mkℚᵘ (+ n) 0
numeral zero    = ℚᵘₚ.≃-refl
numeral (suc n) = ℚᵘₚ.≃-trans (toℚᵘ-homo-+ 1ℚ (whole n)) (ℚᵘₚ.≃-trans (ℚᵘₚ.+-congʳ (toℚᵘ 1ℚ) (numeral n))
  (ℚᵘ.*≡* (cong (ℤ._* + 1) (cong (λ i → + 1 ℤ.+ i) (ℤₚ.*-identityʳ (+ n))))))

inverse : ∀ n → times _+_ 0ℚ (suc n) (part (suc n)) ≡ 1ℚ
inverse n = trans (times-* (suc n) (part (suc n))) (toℚᵘ-injective (ℚᵘₚ.≃-trans
  (toℚᵘ-homo-* (whole (suc n)) (part (suc n))) (ℚᵘₚ.≃-trans
  (ℚᵘₚ.*-cong (numeral (suc n)) (toℚᵘ-part n)) (ℚᵘ.*≡* units))))
  where
  units : (+ suc n ℤ.* + 1) ℤ.* + 1 ≡ + 1 ℤ.* + (1 ℕ.* suc n)
  units = trans (ℤₚ.*-identityʳ (+ suc n ℤ.* + 1)) (trans (ℤₚ.*-identityʳ (+ suc n))
    (sym (trans (ℤₚ.*-identityˡ (+ (1 ℕ.* suc n))) (cong +_ (ℕₚ.*-identityˡ (suc n))))))
  toℚᵘ-part : ∀ n → toℚᵘ (part (suc n)) ℚᵘ.≃ ℚᵘ.mkℚᵘ (+ 1) n
  toℚᵘ-part n = toℚᵘ-fromℚᵘ (ℚᵘ.mkℚᵘ (+ 1) n)

rationals : Chances
rationals = record
  { C = ℚ ; _+_ = _+_ ; _*_ = _*_ ; 0# = 0ℚ ; 1# = 1ℚ
  ; ring = IsCommutativeRing.isCommutativeSemiring +-*-isCommutativeRing
  ; inv = part ; inverse = inverse }
