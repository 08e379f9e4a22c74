{-# OPTIONS --safe --without-K #-}

-- False: a round's tokens alone have the target's law, whatever their number.
-- Rejected: Target.complete target L text (proj₂ x) !=

module RoundAlone where

open import Data.List using (length; map)
open import Data.Nat using (ℕ; _<_)
open import Data.Product using (_,_; proj₂)
open import Fractions using (Chances)
open import Relation.Binary.PropositionalEquality
open import Sampler

module _ (chances : Chances) (D : ℕ) (D>0 : 0 < D) (v : ℕ) where
  open Chances chances
  open import Law chances
  open import Round chances D D>0 v
  open Programs D v

  alone : ∀ (target : Text → Distribution) draft L text g → let open Target target in
    mean (round draft text >>= λ { (path , emitted) → done (map proj₂ emitted) }) g ≡ mean (plain L text) g
  alone target draft L text g = round-law target draft L text g
