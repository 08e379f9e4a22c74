{-# OPTIONS --safe --without-K #-}

-- Draws as a seed makes them: Philox4x32-10, and `below` on its words. docs/distributions.md, section 5;
-- journee_deploy/controller/philox.py. Definitions alone: that the words act as independent uniform ones is believed,
-- not proved. The compiled program answers with these, so that a case is answered from its seed on.

module Philox where

open import Agda.Builtin.Nat using (div-helper; mod-helper)
open import Data.Bool.Base using (if_then_else_)
open import Data.List.Base using (List; []; _∷_)
open import Data.Maybe.Base using (Maybe; just; nothing)
open import Data.Nat.Base using (ℕ; zero; suc; _+_; _*_; _<ᵇ_; _∸_)
open import Data.Product using (_×_; _,_)
open import Sampler

infixl 7 _/1+_ _%1+_
-- Division by one more than what is written.
_/1+_ _%1+_ : ℕ → ℕ → ℕ
n /1+ m = div-helper 0 m n m
n %1+ m = mod-helper 0 m n m

WORD : ℕ
WORD = 4294967295  -- the largest word

high low : ℕ → ℕ
high n = n /1+ WORD
low  n = n %1+ WORD

xor : ℕ → ℕ → ℕ → ℕ
xor zero    a b = 0
xor (suc k) a b = (a %1+ 1 + b %1+ 1) %1+ 1 + 2 * xor k (a /1+ 1) (b /1+ 1)

infixl 5 _⊕_
_⊕_ : ℕ → ℕ → ℕ
_⊕_ = xor 32

record Block : Set where
  constructor block
  field
    w₀ w₁ w₂ w₃ : ℕ

philox : ℕ → Block → ℕ → ℕ → Block
philox zero    c                        k₀ k₁ = c
philox (suc k) (block c₀ c₁ c₂ c₃) k₀ k₁ =
  let first  = 3528531795 * c₀
      second = 3449720151 * c₂
  in philox k (block (high second ⊕ c₁ ⊕ k₀) (low second) (high first ⊕ c₃ ⊕ k₁) (low first))
              (low (k₀ + 2654435769)) (low (k₁ + 3144134277))

front : Block → List ℕ → List ℕ
front (block a b c d) rest = a ∷ b ∷ c ∷ d ∷ rest

-- The words of a key, four a block. (Helpers rather than `with`, which would have Agda compute with unknown words.)
blocks : ℕ → ℕ → Block → ℕ → ℕ → List ℕ
blocks zero    number c k₀ k₁ = []
blocks (suc n) number (block c₀ c₁ c₂ c₃) k₀ k₁ =
  front (philox 10 (block number c₁ c₂ c₃) k₀ k₁) (blocks n (suc number) (block c₀ c₁ c₂ c₃) k₀ k₁)

-- Bit length, of numbers up to 2^64.
bits : ℕ → ℕ → ℕ
bits zero    n       = 0
bits (suc k) zero    = 0
bits (suc k) (suc n) = suc (bits k (suc n /1+ 1))

halve : ℕ → ℕ → ℕ
halve zero    n = n
halve (suc k) n = halve k (n /1+ 1)

-- Words, the first one high, until there are `width` bits; the surplus low bits are dropped.
gather : ℕ → ℕ → ℕ → List ℕ → Maybe (ℕ × List ℕ)
gather width have value []          =
  if have <ᵇ width then nothing else just (halve (have ∸ width) value , [])
gather width have value (w ∷ words) =
  if have <ᵇ width then gather width (have + 32) (value * 4294967296 + w) words
  else just (halve (have ∸ width) value , w ∷ words)

-- Drawn again while not below n; `nothing` when the words given have run out.
uniform : ℕ → ℕ → List ℕ → Maybe (ℕ × List ℕ)
again : ℕ → ℕ → Maybe (ℕ × List ℕ) → Maybe (ℕ × List ℕ)
uniform zero    n words = nothing
uniform (suc k) n words = again k n (gather (bits 64 (n ∸ 1)) 0 0 words)
again k n nothing               = nothing
again k n (just (u , words)) = if u <ᵇ n then just (u , words) else uniform k n words

record Seed : Set where
  constructor seeded
  field
    seed sample : ℕ

drawn′ : Maybe (ℕ × List ℕ) → Maybe ℕ
drawn′ nothing        = nothing
drawn′ (just (u , _)) = just u

-- below(n) under the key of a sample. 64 blocks of words: the chance that they don't do is below 2^-64.
keyed : Block → ℕ → ℕ → ℕ → ℕ → Maybe ℕ
keyed (block k₀ k₁ _ _) purpose position number n =
  drawn′ (uniform 128 n (blocks 64 0 (block 0 position number purpose) k₀ k₁))

value : Seed → ℕ → ℕ → ℕ → ℕ → Maybe ℕ
value (seeded seed sample) = keyed (philox 10 (block sample 0 0 WORD) (low seed) (high seed))

purposeNumber : Purpose → ℕ
purposeNumber propose = 0
purposeNumber judge   = 1
purposeNumber recover = 2
purposeNumber bonus   = 3

-- A program run on a seed's draws, in the round of that number.
run : ∀ {A : Set} → Seed → ℕ → Draws A → Maybe A
next : ∀ {A : Set} → Seed → ℕ → (ℕ → Draws A) → Maybe ℕ → Maybe A
run seed number (done a) = just a
run seed number (below (purpose , position) n d) =
  next seed number d (value seed (purposeNumber purpose) position number n)
next seed number d nothing  = nothing
next seed number d (just u) = run seed number (d u)
