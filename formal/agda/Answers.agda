{-# OPTIONS --safe --without-K #-}

-- Cases in, answers out: conformance/'s decisions, made by the programs that the theorems are about.
--
-- A line is a case, of numbers in decimal; check.py writes and reads them. An answer is a line of numbers too, or "?"
-- for what has none (n = 0, weights that don't add up).

module Answers where

open import Agda.Builtin.Char using (Char; primCharToNat)
open import Agda.Builtin.Equality using (_≡_; refl)
open import Agda.Builtin.Nat using (_==_; _-_)
open import Agda.Builtin.String using (String; primShowNat; primStringAppend; primStringFromList; primStringToList)
open import Data.Bool.Base using (Bool; true; false; if_then_else_)
open import Data.Fin.Base using (Fin; zero; suc; toℕ)
open import Data.List.Base using (List; []; _∷_; length; map; drop; take; reverse; replicate; _++_)
open import Data.Maybe.Base using (Maybe; just; nothing; maybe′)
open import Data.Nat.Base using (ℕ; zero; suc; _+_; _*_; _<ᵇ_)
open import Data.Product using (_×_; _,_)
open import Sampler
open import Philox

-- 2^50.
D : ℕ
D = 1125899906842624

-- Reading.

close : Maybe ℕ → List ℕ → List ℕ
close nothing  found = found
close (just n) found = n ∷ found

-- The numbers of each line: what was found of this one, and the digits of a number that may go on.
lines : List Char → List ℕ → Maybe ℕ → List (List ℕ)
lines []       found digits = reverse (close digits found) ∷ []
lines (c ∷ cs) found digits = next (primCharToNat c)
  where
  next : ℕ → List (List ℕ)
  next code =
    if code == 10 then reverse (close digits found) ∷ lines cs [] nothing
    else if code == 32 then lines cs (close digits found) nothing
    else lines cs found (just (10 * maybe′ (λ n → n) 0 digits + (code - 48)))

-- A list's numbers as weights; 0 past its end.
weights : ∀ {n} → List ℕ → Weights n
weights []       x       = 0
weights (w ∷ ws) zero    = w
weights (w ∷ ws) (suc x) = weights ws x

token : ∀ v → ℕ → Fin (suc v)
token v       zero    = zero
token zero    (suc x) = zero
token (suc v) (suc x) = suc (token v x)

-- A proof that two numbers are equal, if they are; the compiled program never looks into it.
equal : ∀ m n → (m == n) ≡ true → m ≡ n
equal zero    zero    e = refl
equal (suc m) (suc n) e with equal m n e
... | refl = refl

same : ∀ m n → Maybe (m ≡ n)
same m n with m == n | equal m n
... | true  | proof = just (proof refl)
... | false | _     = nothing

-- Answering.

verdict-answer : ∀ {n} → Maybe (Kind × Fin n) → List ℕ
verdict-answer nothing               = []
verdict-answer (just (accepted , x)) = 1 ∷ toℕ x ∷ []
verdict-answer (just (_        , x)) = 0 ∷ toℕ x ∷ []

code : Kind → ℕ
code accepted  = 0
code recovered = 1
code drawn     = 2

module Round (v : ℕ) where

  open Programs D v

  distribution : List ℕ → Maybe Distribution
  distribution ws with same (total {suc v} (weights ws)) D
  ... | just whole = just (weights ws adds-up whole)
  ... | nothing    = nothing

  -- So many distributions, from numbers one after the other.
  distributions : ℕ → List ℕ → Maybe (List Distribution)
  distributions zero    ns = just []
  distributions (suc k) ns with distribution (take (suc v) ns) | distributions k (drop (suc v) ns)
  ... | just d | just ds = just (d ∷ ds)
  ... | _      | _       = nothing

  -- A draft that proposes from each in turn, whatever it proposed before.
  chain : List Distribution → Draft
  chain []       = stop
  chain (q ∷ qs) = q ⟨ (λ x → chain qs) ⟩

  nth : Distribution → List Distribution → ℕ → Distribution
  nth d []       n       = d
  nth d (e ∷ ds) zero    = e
  nth d (e ∷ ds) (suc n) = nth d ds n

  told : Path × Emitted → List ℕ
  told (path , emitted) =
    length path ∷ map (λ { (q , x) → toℕ x }) path ++
      map (λ { (kind , x) → toℕ x }) emitted ++ map (λ { (kind , x) → code kind }) emitted

  answer : ℕ × ℕ → ℕ → Maybe (List Distribution) → Maybe (List Distribution) → List ℕ
  answer key position (just (p ∷ ps)) (just qs) = maybe′ told []
    (run key 0 (Target.round (λ text → nth p (p ∷ ps) (length text - position)) (chain qs) (replicate position zero)))
  answer key position _ _ = []

four : Words → List ℕ
four (a , b , c , d) = a ∷ b ∷ c ∷ d ∷ []

answer : List ℕ → List ℕ
answer (0 ∷ c₀ ∷ c₁ ∷ c₂ ∷ c₃ ∷ k₀ ∷ k₁ ∷ []) = four (philox 10 (c₀ , c₁ , c₂ , c₃) (k₀ , k₁))
answer (1 ∷ low ∷ high ∷ sample ∷ purpose ∷ position ∷ round ∷ n ∷ []) =
  maybe′ (λ u → u ∷ []) [] (Draw.value (sample-key low high sample) purpose position round n)
answer (2 ∷ coin ∷ suc v ∷ ws) = toℕ (pick {v} (weights ws) coin) ∷ []
answer (3 ∷ low ∷ high ∷ sample ∷ position ∷ round ∷ x ∷ suc v ∷ ws) =
  verdict-answer (run (sample-key low high sample) round
    (verdict {v} position (weights (take (suc v) ws)) (weights (drop (suc v) ws)) (token v x)))
answer (4 ∷ low ∷ high ∷ sample ∷ position ∷ k ∷ l ∷ suc v ∷ ws) =
  Round.answer v (sample-key low high sample) position
    (Round.distributions v l ws) (Round.distributions v k (drop (l * suc v) ws))
answer _ = []

-- Writing.

shown : List ℕ → String
shown []       = "?"
shown (n ∷ []) = primShowNat n
shown (n ∷ ns) = primStringAppend (primShowNat n) (primStringAppend " " (shown ns))

written : List (List ℕ) → String
written []         = ""
written ([] ∷ ls)  = written ls
written (ns ∷ ls)  = primStringAppend (shown (answer ns)) (primStringAppend "\n" (written ls))

answers : String → String
answers text = written (lines (primStringToList text) [] nothing)
