-- Reads questions, a line each, and prints answers. The one file that isn't --safe: reading and printing are Haskell's.

module Shell where

open import Agda.Builtin.IO using (IO)
open import Agda.Builtin.Unit using (⊤)
open import Answers using (answer)
open import Data.List.Base using (List)
open import Data.Nat.Base using (ℕ)

postulate lineByLine : (List ℕ → List ℕ) → IO ⊤
{-# COMPILE GHC lineByLine = \ f -> interact (unlines . map (unwords . map show . f . map read . words) . lines) #-}

main : IO ⊤
main = lineByLine answer
