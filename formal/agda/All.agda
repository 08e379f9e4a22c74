{-# OPTIONS --safe --without-K #-}

-- Everything that is proved. Shell.agda, which prints, is not among it.

module All where

import Answers
import Compose
import Darts
import Fractions
import Law
import Philox
import Rational
import Round
import Sampler
import Step
import Units
