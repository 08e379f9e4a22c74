{-# OPTIONS --safe --without-K #-}

-- What the compiled program answers to a case: the definitions that the theorems are about, run on the case's seed.
-- A question is a list of numbers, its kind first; so is an answer. conformance/journee_conformance/formal.py writes and reads them. A
-- question that isn't one is answered by the empty list.

module Answers where

open import Data.Bool.Base using (Bool; true; false)
open import Data.Fin.Base using (Fin; zero; suc; toℕ)
open import Data.List.Base using (List; []; _∷_; _++_; length; map; replicate)
open import Data.Maybe.Base using (Maybe; just; nothing)
open import Data.Nat.Base using (ℕ; zero; suc; _∸_; _≡ᵇ_; _+_)
open import Data.Product using (_×_; _,_; proj₁; proj₂)
open import Philox
open import Relation.Binary.PropositionalEquality.Core using (_≡_; refl; cong)
open import Sampler
open import Weights

UNITS : ℕ
UNITS = 1125899906842624  -- 2^50

same : ∀ m n → (m ≡ᵇ n) ≡ true → m ≡ n
same zero    zero    e = refl
same (suc m) (suc n) e = cong suc (same m n e)

equal : ∀ m n → Maybe (m ≡ n)
equal m n with m ≡ᵇ n | same m n
... | true  | proof = just (proof refl)
... | false | _     = nothing

-- The first n + 1 numbers as weights, and the numbers after them; 0 where there are too few.
weights : ∀ n → List ℕ → Weights n × List ℕ
weights zero    rest       = (λ ()) , rest
weights (suc n) []         = (λ _ → 0) , []
weights (suc n) (w ∷ rest) with weights n rest
... | later , after = (λ where zero → w ; (suc x) → later x) , after

token : ∀ n → ℕ → Maybe (Fin (suc n))
token n       zero    = just zero
token zero    (suc x) = nothing
token (suc n) (suc x) with token n x
... | nothing = nothing
... | just y  = just (suc y)

kindNumber : Kind → ℕ
kindNumber accepted  = 0
kindNumber recovered = 1
kindNumber drawn     = 2

judgement : ∀ {n} → Maybe (Kind × Fin n) → List ℕ
judgement nothing           = []
judgement (just (kind , y)) = kindNumber kind ∷ toℕ y ∷ []

-- The rounds of a case: q and p are given by position alone.
module _ (v : ℕ) where
  open Programs UNITS v

  distributions : ℕ → List ℕ → Maybe (List Distribution × List ℕ)
  distributions zero    rest = just ([] , rest)
  distributions (suc n) rest with weights (suc v) rest
  ... | w , after with equal (total w) UNITS | distributions n after
  ...   | just whole | just (others , end) = just ((w adds-up whole) ∷ others , end)
  ...   | _          | _                   = nothing

  row : Distribution → List Distribution → ℕ → Distribution
  row first []            _       = first
  row first (d ∷ _)       zero    = d
  row first (_ ∷ rest)    (suc i) = row first rest i

  drafted : List Distribution → Draft
  drafted []         = stop
  drafted (q ∷ rest) = q ⟨ (λ _ → drafted rest) ⟩

  told : Maybe (Path × Emitted) → List ℕ
  told nothing = []
  told (just (path , emitted)) =
    length path ∷ length emitted ∷
    map (λ step → toℕ (proj₂ step)) path ++ map (λ e → toℕ (proj₂ e)) emitted ++ map (λ e → kindNumber (proj₁ e)) emitted

  roundAnswer : Seed → ℕ → ℕ → List ℕ → List ℕ
  roundAnswer seed position K rest with distributions K rest
  ... | nothing = []
  ... | just (q , after) with distributions (suc K) after
  ...   | just (first ∷ p , []) =
    told (run seed 0 (Target.round (λ text → row first (first ∷ p) (length text ∸ position)) (drafted q) (replicate position zero)))
  ...   | _ = []

single : Maybe ℕ → List ℕ
single nothing  = []
single (just u) = u ∷ []

-- The verdict on a proposal that is one, with its draws from the seed.
verdictAnswer : Seed → ℕ → ℕ → ∀ v → Weights (suc v) → Weights (suc v) → Maybe (Fin (suc v)) → List ℕ
verdictAnswer seed position number v p q nothing  = []
verdictAnswer seed position number v p q (just x) = judgement (run seed number (verdict position p q x))

answer : List ℕ → List ℕ
answer (0 ∷ c₀ ∷ c₁ ∷ c₂ ∷ c₃ ∷ k₀ ∷ k₁ ∷ []) = front (philox 10 (block c₀ c₁ c₂ c₃) k₀ k₁) []
answer (1 ∷ seed ∷ sample ∷ purpose ∷ position ∷ number ∷ n ∷ []) =
  single (value (seeded seed sample) purpose position number n)
answer (2 ∷ coin ∷ v ∷ units) = toℕ (pick (proj₁ (weights (suc v) units)) coin) ∷ []
answer (3 ∷ seed ∷ sample ∷ position ∷ number ∷ proposal ∷ v ∷ units) =
  let (p , after) = weights (suc v) units
      (q , _)     = weights (suc v) after
  in verdictAnswer (seeded seed sample) position number v p q (token v proposal)
answer (4 ∷ seed ∷ sample ∷ position ∷ K ∷ v ∷ units) = roundAnswer v (seeded seed sample) position K units
answer _ = []
