-- The compiled program: standard input to standard output. The one file that is not --safe, for it calls Haskell.

module Shell where

open import Agda.Builtin.IO using (IO)
open import Agda.Builtin.String using (String)
open import Agda.Builtin.Unit using (⊤)
open import Answers using (answers)

{-# FOREIGN GHC import qualified Data.Text.IO #-}

postulate interact : (String → String) → IO ⊤
{-# COMPILE GHC interact = Data.Text.IO.interact #-}

main : IO ⊤
main = interact answers
