{-# OPTIONS --safe --without-K #-}

-- The sampler, as it ships: definitions alone. The theorems are about these programs, and the same programs,
-- compiled, answer the cases of conformance/ (Answers.agda). Nothing is proved here.
--
-- A program asks for draws and goes on with what it gets: `below key n` is a whole number from 0 to n - 1. Who
-- answers is left open: Law.agda gives every answer the same chance, Philox.agda gives the one that a seed makes.
-- docs/distributions.md, sections 5 and 6; journee_deploy/controller/residual.py, chance.py and speculate.py.

module Sampler where

open import Agda.Builtin.Equality using (_≡_)
open import Data.Bool.Base using (if_then_else_)
open import Data.Fin.Base using (Fin; zero; suc)
open import Data.List.Base using (List; []; _∷_; _++_; length)
open import Data.Nat.Base using (ℕ; zero; suc; _+_; _∸_; _⊓_; _<ᵇ_)
open import Data.Product using (_×_; _,_)

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

data Purpose : Set where
  propose judge recover bonus : Purpose

-- A draw's key within a round: what it is for, and the position of the token in question.
Key : Set
Key = Purpose × ℕ

data Draws (A : Set) : Set where
  done  : A → Draws A
  below : Key → (n : ℕ) → (ℕ → Draws A) → Draws A

infixl 1 _>>=_
_>>=_ : ∀ {A B : Set} → Draws A → (A → Draws B) → Draws B
done a      >>= f = f a
below k n d >>= f = below k n (λ u → d u >>= f)

-- The first token whose cumulative sum is greater than the coin; `reached` is the sum of the tokens before. A coin
-- is below the total, so the last token needs no comparison.
pickFrom : ∀ {n} → ℕ → Weights (suc n) → ℕ → Fin (suc n)
pickFrom {zero}  reached w coin = zero
pickFrom {suc n} reached w coin =
  if coin <ᵇ reached + w zero then zero else suc (pickFrom (reached + w zero) (λ x → w (suc x)) coin)

pick : ∀ {n} → Weights (suc n) → ℕ → Fin (suc n)
pick = pickFrom 0

data Kind : Set where
  accepted recovered drawn : Kind

-- The verdict on a proposal x, drawn from q: kept iff below(q[x]) < p[x]; else recovered from max(p - q, 0).
verdict : ∀ {n} → ℕ → Weights (suc n) → Weights (suc n) → Fin (suc n) → Draws (Kind × Fin (suc n))
verdict position p q x = below (judge , position) (q x) λ coin →
  if coin <ᵇ p x
  then done (accepted , x)
  else below (recover , position) (total (residual p q)) λ u → done (recovered , pick (residual p q) u)

-- From here on: v + 1 tokens, D units.
module Programs (D v : ℕ) where

  Token : Set
  Token = Fin (suc v)

  record Distribution : Set where
    constructor _adds-up_
    field
      weight : Weights (suc v)
      whole  : total weight ≡ D
  open Distribution public

  -- The text so far, newest token first; a token's position is the length of what stands before it.
  Text : Set
  Text = List Token

  -- What a draft may do: stop, or propose from some q, and go on as the proposal suggests. A tree, so the number
  -- of proposals and every later q may depend on earlier proposals.
  data Draft : Set where
    stop : Draft
    _⟨_⟩ : Distribution → (Token → Draft) → Draft

  -- The proposals of a round, each with the distribution that it was drawn from.
  Path : Set
  Path = List (Distribution × Token)

  Emitted : Set
  Emitted = List (Kind × Token)

  draw : Purpose → Text → Distribution → Draws Token
  draw purpose text q = below (purpose , length text) D λ u → done (pick (weight q) u)

  -- First all proposals are drawn; nothing of the target is looked at.
  proposals : Text → Draft → Draws Path
  proposals text stop        = done []
  proposals text (q ⟨ next ⟩) = draw propose text q >>= λ x →
    proposals (x ∷ text) (next x) >>= λ path → done ((q , x) ∷ path)

  -- The target: the distribution of the token that follows a text.
  module Target (target : Text → Distribution) where

    -- Then they are judged in order, up to the first rejection; with none, one more token is drawn from the target.
    judged : Text → Path → Draws Emitted
    judged text []               = draw bonus text (target text) >>= λ x → done ((drawn , x) ∷ [])
    judged text ((q , x) ∷ path) = verdict (length text) (weight (target text)) (weight q) x >>= λ where
      (accepted , y) → judged (y ∷ text) path >>= λ emitted → done ((accepted , y) ∷ emitted)
      (kind     , y) → done ((kind , y) ∷ [])

    round : Draft → Text → Draws (Path × Emitted)
    round draft text =
      proposals text draft >>= λ path → judged text path >>= λ emitted → done (path , emitted)

    -- Plain decoding: so many tokens, each drawn from the target.
    plain : ℕ → Text → Draws (List Token)
    plain zero    text = done []
    plain (suc L) text = draw bonus text (target text) >>= λ x →
      plain L (x ∷ text) >>= λ rest → done (x ∷ rest)

    -- The first L tokens of what was emitted, completed by plain decoding where it is shorter.
    complete : ℕ → Text → Emitted → Draws (List Token)
    complete zero    text emitted              = done []
    complete (suc L) text []                   = plain (suc L) text
    complete (suc L) text ((kind , x) ∷ emitted) =
      complete L (x ∷ text) emitted >>= λ rest → done (x ∷ rest)

    -- What earlier rounds drew and emitted, the latest first.
    History : Set
    History = List (Path × Emitted)

    -- The text after a round.
    extend : Text → Emitted → Text
    extend text []                     = text
    extend text ((kind , x) ∷ emitted) = extend (x ∷ text) emitted

    -- Rounds, one after the other. A draft may depend on all that happened before its round, not on what comes.
    rounds : (History → Text → Draft) → ℕ → History → Text → Draws Emitted
    rounds drafter zero    history text = done []
    rounds drafter (suc n) history text = round (drafter history text) text >>= λ where
      (path , emitted) → rounds drafter n ((path , emitted) ∷ history) (extend text emitted) >>= λ more →
        done (emitted ++ more)
