{-# OPTIONS --safe --without-K #-}

-- The standard library's rationals are such chances: nothing is assumed in the end.

module Rational where

open import Algebra.Structures using (IsCommutativeRing)
open import Data.Integer as ℤ using (+_)
import Data.Integer.Properties as ℤₚ
open import Data.Nat using (ℕ; zero; suc)
open import Data.Rational using (ℚ; 0ℚ; 1ℚ; _+_; _*_; fromℚᵘ; toℚᵘ)
open import Data.Rational.Properties
open import Data.Rational.Unnormalised as ℚᵘ using (ℚᵘ; mkℚᵘ; *≡*)
import Data.Rational.Unnormalised.Properties as ℚᵘₚ
open import Fractions using (Chances; times)
open import Relation.Binary.PropositionalEquality

share : ℕ → ℚ
share zero    = 0ℚ
share (suc n) = fromℚᵘ (mkℚᵘ (+ 1) n)

fromℚᵘ-+ : ∀ a b → fromℚᵘ a + fromℚᵘ b ≡ fromℚᵘ (a ℚᵘ.+ b)
fromℚᵘ-+ a b = toℚᵘ-injective (ℚᵘₚ.≃-trans (toℚᵘ-homo-+ (fromℚᵘ a) (fromℚᵘ b))
  (ℚᵘₚ.≃-trans (ℚᵘₚ.+-cong (toℚᵘ-fromℚᵘ a) (toℚᵘ-fromℚᵘ b)) (ℚᵘₚ.≃-sym (toℚᵘ-fromℚᵘ (a ℚᵘ.+ b)))))

-- 1/d + m/d = (m + 1)/d, as fractions that are not reduced.
one-more : ∀ m n → mkℚᵘ (+ 1) n ℚᵘ.+ mkℚᵘ (+ m) n ℚᵘ.≃ mkℚᵘ (+ suc m) n
one-more m n = *≡* (trans (cong (ℤ._* d) (sym (ℤₚ.*-distribʳ-+ d (+ 1) (+ m)))) (ℤₚ.*-assoc (+ suc m) d d))
  where d = + suc n

shares : ∀ m n → times _+_ 0ℚ m (share (suc n)) ≡ fromℚᵘ (mkℚᵘ (+ m) n)
shares zero    n = fromℚᵘ-cong {mkℚᵘ (+ 0) 0} {mkℚᵘ (+ 0) n} (*≡* refl)
shares (suc m) n = trans (cong (λ c → share (suc n) + c) (shares m n))
  (trans (fromℚᵘ-+ (mkℚᵘ (+ 1) n) (mkℚᵘ (+ m) n)) (fromℚᵘ-cong (one-more m n)))

rationals : Chances
rationals = record
  { C = ℚ ; _+_ = _+_ ; _*_ = _*_ ; 0# = 0ℚ ; 1# = 1ℚ
  ; ring = IsCommutativeRing.isCommutativeSemiring +-*-isCommutativeRing
  ; inv = share
  ; inverse = λ n → trans (shares (suc n) n)
      (fromℚᵘ-cong {mkℚᵘ (+ suc n) n} {mkℚᵘ (+ 1) 0} (*≡* (ℤₚ.*-comm (+ suc n) (+ 1))))
  }
