{-# OPTIONS --safe --without-K #-}

-- (5) Rounds one after the other have the target's law, by induction on their number.
--
-- What is assumed stands in the types: a draft is a function of a state and the text (`Strategy`), and the state a
-- function of what the rounds before proposed and emitted, so no draft looks at the target's row or at a draw to
-- come; every proposal is drawn from the q it is judged with, and every draw is its own (`Draws`); the target's row is
-- a function of the text alone. The rounds' first L tokens are completed by the target where they are fewer.

open import Data.Nat using (ℕ; _<_)
open import Fractions using (Chances)
module Rounds (chances : Chances) (D : ℕ) (D>0 : 0 < D) (v : ℕ) where

open import Data.List using (List; []; _∷_; _++_)
open import Data.Nat using (zero; suc)
open import Data.Product using (_×_; _,_)
open import Relation.Binary.PropositionalEquality
open import Law chances
open import Round chances D D>0 v
open import Sampler
open Chances chances
open ≡-Reasoning

open Programs D v

-- How to draft, and what to remember: K, its adaptation and the kind of draft are cases of this.
record Strategy : Set₁ where
  field
    State    : Set
    draft    : State → Text → Draft
    remember : State → Text → Path × Emitted → State

-- The text after a round.
extended : Text → Emitted → Text
extended text []                  = text
extended text ((kind , x) ∷ rest) = extended (x ∷ text) rest

module _ (target : Text → Distribution) (strategy : Strategy) where

  open Target target
  open Strategy strategy

  rounds : ℕ → State → Text → Draws Emitted
  more   : ℕ → State → Text → Path × Emitted → Draws Emitted
  rounds zero    state text = done []
  rounds (suc n) state text = round (draft state text) text >>= more n state text
  more n state text (path , emitted) =
    rounds n (remember state text (path , emitted)) (extended text emitted) >>= λ rest → done (emitted ++ rest)

  mutual

    rounds-law : ∀ n state L text g → mean (rounds n state text) (after-round target L text g) ≡ mean (plain L text) g
    rounds-law zero    state L text g = nothing-emitted L
      where
      nothing-emitted : ∀ L → mean (complete L text []) g ≡ mean (plain L text) g
      nothing-emitted zero    = refl
      nothing-emitted (suc L) = refl
    rounds-law (suc n) state L text g = begin
      mean (round (draft state text) text >>= more n state text) (after-round target L text g)
        ≡⟨ mean->>= (round (draft state text) text) (more n state text) (after-round target L text g) ⟩
      mean (round (draft state text) text) (λ outcome → mean (more n state text outcome) (after-round target L text g))
        ≡⟨ mean-cong (round (draft state text) text) then ⟩
      mean (round (draft state text) text) (λ outcome → mean (completed target L text outcome) g)
        ≡⟨ sym (mean->>= (round (draft state text) text) (completed target L text) g) ⟩
      mean (round (draft state text) text >>= completed target L text) g
        ≡⟨ round-law target (draft state text) L text g ⟩
      mean (plain L text) g ∎
      where
      then : ∀ outcome →
        mean (more n state text outcome) (after-round target L text g) ≡ mean (completed target L text outcome) g
      then (path , emitted) = trans
        (mean-map (rounds n (remember state text (path , emitted)) (extended text emitted)) (emitted ++_) (after-round target L text g))
        (absorbed n (remember state text (path , emitted)) emitted L text g)

    -- Later rounds, seen from a text that some tokens were added to.
    absorbed : ∀ n state emitted L text g →
      mean (rounds n state (extended text emitted)) (λ rest → after-round target L text g (emitted ++ rest)) ≡
      after-round target L text g emitted
    absorbed n state []                  L       text g = trans (rounds-law n state L text g) (sym (nothing-emitted L))
      where
      nothing-emitted : ∀ L → mean (complete L text []) g ≡ mean (plain L text) g
      nothing-emitted zero    = refl
      nothing-emitted (suc L) = refl
    absorbed n state ((kind , x) ∷ rest) zero    text g = trans
      (mean-cong (rounds n state (extended (x ∷ text) rest)) (λ _ → refl))
      (rounds-law n state 0 (extended (x ∷ text) rest) (λ _ → g []))
    absorbed n state ((kind , x) ∷ rest) (suc L) text g = begin
      mean (rounds n state (extended (x ∷ text) rest))
           (λ later → mean (complete L (x ∷ text) (rest ++ later) >>= λ tokens → done (x ∷ tokens)) g)
        ≡⟨ mean-cong (rounds n state (extended (x ∷ text) rest))
             (λ later → mean-map (complete L (x ∷ text) (rest ++ later)) (x ∷_) g) ⟩
      mean (rounds n state (extended (x ∷ text) rest))
           (λ later → after-round target L (x ∷ text) (λ tokens → g (x ∷ tokens)) (rest ++ later))
        ≡⟨ absorbed n state rest L (x ∷ text) (λ tokens → g (x ∷ tokens)) ⟩
      after-round target L (x ∷ text) (λ tokens → g (x ∷ tokens)) rest
        ≡⟨ sym (mean-map (complete L (x ∷ text) rest) (x ∷_) g) ⟩
      after-round target (suc L) text g ((kind , x) ∷ rest) ∎
