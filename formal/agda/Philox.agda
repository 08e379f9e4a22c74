{-# OPTIONS --safe --without-K #-}

-- Philox4x32-10 and below(n), docs/distributions.md, section 5: who answers when a seed is given. Definitions alone;
-- that the words act as independent uniform ones is assumed, not proved.

module Philox where

open import Data.Bool.Base using (if_then_else_)
open import Data.Maybe.Base using (Maybe; just; nothing; maybe′)
open import Data.Nat.Base using (ℕ; zero; suc; _+_; _*_; _∸_; _<ᵇ_)
open import Data.Product using (_×_; _,_)
open import Agda.Builtin.Nat using (div-helper; mod-helper; _==_)
open import Sampler

-- By n + 1.
quotient remainder : ℕ → ℕ → ℕ
quotient  m n = div-helper 0 n m n
remainder m n = mod-helper 0 n m n

half odd high low : ℕ → ℕ
half m = quotient m 1
odd m  = remainder m 1
high m = quotient m 4294967295
low m  = remainder m 4294967295

-- Exclusive or of so many bits.
xor : ℕ → ℕ → ℕ → ℕ
xor zero       a b = 0
xor (suc bits) a b = (if odd a == odd b then 0 else 1) + 2 * xor bits (half a) (half b)

Words : Set
Words = ℕ × ℕ × ℕ × ℕ

philox : ℕ → Words → ℕ × ℕ → Words
philox zero         words               key       = words
philox (suc rounds) (c₀ , c₁ , c₂ , c₃) (k₀ , k₁) =
  philox rounds (xor 32 (xor 32 (high B) c₁) k₀ , low B , xor 32 (xor 32 (high A) c₃) k₁ , low A)
    (low (k₀ + 2654435769) , low (k₁ + 3144134277))
  where
  A = 3528531795 * c₀
  B = 3449720151 * c₂

-- The sample's key, of the seed's two words, low one first, and the sample's number.
sample-key : ℕ → ℕ → ℕ → ℕ × ℕ
sample-key low-word high-word sample = first-two (philox 10 (sample , 0 , 0 , 4294967295) (low-word , high-word))
  where
  first-two : Words → ℕ × ℕ
  first-two (a , b , _ , _) = a , b

-- A draw key's words: the n-th, from 0.
module Draw (key : ℕ × ℕ) (purpose position round : ℕ) where

  select : ℕ → Words → ℕ
  select 0 (a , _ , _ , _) = a
  select 1 (_ , b , _ , _) = b
  select 2 (_ , _ , c , _) = c
  select _ (_ , _ , _ , d) = d

  word : ℕ → ℕ
  word n = select (remainder n 3) (philox 10 (quotient n 3 , position , round , purpose) key)

  -- How many bits a number has, if no more than so many.
  width : ℕ → ℕ → ℕ
  width zero       n = 0
  width (suc fuel) 0 = 0
  width (suc fuel) n = suc (width fuel (half n))

  joined : ℕ → ℕ → ℕ → ℕ
  joined zero        from value = value
  joined (suc count) from value = joined count (suc from) (value * 4294967296 + word from)

  shift : ℕ → ℕ → ℕ
  shift zero       value = value
  shift (suc bits) value = shift bits (half value)

  -- Candidates, of so many words and with so many bits too many, until one is below n.
  search : ℕ → ℕ → ℕ → ℕ → ℕ → Maybe ℕ
  search zero       n count spare from = nothing
  search (suc tries) n count spare from =
    if candidate <ᵇ n then just candidate else search tries n count spare (count + from)
    where candidate = shift spare (joined count from 0)

  -- A candidate is refused with a chance below 1/2, so a thousand are enough for anybody; `nothing` for n = 0, too.
  value : ℕ → Maybe ℕ
  value 0       = nothing
  value (suc n) = search 1000 (suc n) count (count * 32 ∸ bits) 0
    where
    bits  = width 96 n
    count = quotient (bits + 31) 31

number : Purpose → ℕ
number propose = 0
number judge   = 1
number recover = 2
number bonus   = 3

-- A program's outcome, its draws answered by a seed's words in the round of that number.
run : ∀ {A : Set} → ℕ × ℕ → ℕ → Draws A → Maybe A
run key round (done a)                           = just a
run key round (below (purpose , position) n next) =
  maybe′ (λ u → run key round (next u)) nothing (Draw.value key (number purpose) position round n)
