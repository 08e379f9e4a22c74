{-# OPTIONS --safe --without-K #-}

-- (5) Rounds, one after the other: so many rounds, cut at no more tokens, are plain decoding in law.
--
-- By induction on their number. What is assumed is in the types: a round's draft is a function of all that happened
-- before it (`drafter`), its proposals are drawn from the q that they are judged with, a target's row is a function of
-- the text, and every draw is fresh (Law.agda). Where the text ends is a function of its tokens, so it is part of g.

open import Data.Nat using (ℕ; _<_)
open import Fractions using (Chances)
module Compose (chances : Chances) (D : ℕ) (D>0 : 0 < D) (v : ℕ) where

open import Data.List using (List; []; _∷_; _++_; length; map; take)
open import Data.List.Properties using (length-++)
open import Data.Nat using (zero; suc; _≤_; z≤n; s≤s)
import Data.Nat.Properties as ℕₚ
open import Data.Product using (_×_; _,_; proj₂)
open import Data.Unit using (⊤; tt)
open import Relation.Binary.PropositionalEquality
open import Law chances
open import Round chances D D>0 v
open import Sampler
open Chances chances
open ≡-Reasoning

open Programs D v

-- What holds of everything that a program may give.
always : ∀ {A : Set} → (A → Set) → Draws A → Set
always P (done a)      = P a
always P (below k n d) = ∀ u → always P (d u)

anyway : ∀ {A : Set} (d : Draws A) → always (λ _ → ⊤) d
anyway (done a)      = tt
anyway (below k n d) = λ u → anyway (d u)

always->>= : ∀ {A B : Set} {P : A → Set} {Q : B → Set} (d : Draws A) (f : A → Draws B) →
  always P d → (∀ a → P a → always Q (f a)) → always Q (d >>= f)
always->>= (done a)      f p q = q a p
always->>= (below k n d) f p q = λ u → always->>= (d u) f (p u) q

mean-always : ∀ {A : Set} {P : A → Set} (d : Draws A) {f g : A → C} →
  always P d → (∀ a → P a → f a ≡ g a) → mean d f ≡ mean d g
mean-always (done a)      p e = e a p
mean-always (below k n d) p e = cong (inv n *_) (count-cong n (λ u → mean-always (d u) (p u) e))

module _ (target : Text → Distribution) where

  open Target target

  -- Every round emits a token.
  judged-emits : ∀ text path → always (λ emitted → 1 ≤ length emitted) (judged text path)
  judged-emits text []               = λ u → s≤s z≤n
  judged-emits text ((q , x) ∷ path) = always->>= (verdict (length text) (weight (target text)) (weight q) x) _
    (anyway (verdict (length text) (weight (target text)) (weight q) x)) λ where
      (accepted  , y) _ → always->>= (judged (y ∷ text) path) _ (anyway (judged (y ∷ text) path)) (λ _ _ → s≤s z≤n)
      (recovered , y) _ → s≤s z≤n
      (drawn     , y) _ → s≤s z≤n

  round-emits : ∀ draft text → always (λ both → 1 ≤ length (proj₂ both)) (round draft text)
  round-emits draft text = always->>= (proposals text draft) _ (anyway (proposals text draft)) λ path _ →
    always->>= (judged text path) _ (judged-emits text path) (λ emitted one → one)

  module _ (drafter : History → Text → Draft) where

    rounds-emit : ∀ n history text → always (λ emitted → n ≤ length emitted) (rounds drafter n history text)
    rounds-emit zero    history text = z≤n
    rounds-emit (suc n) history text =
      always->>= (round (drafter history text) text) _ (round-emits (drafter history text) text) λ both one →
        always->>= (rounds drafter n (both ∷ history) (extend text (proj₂ both))) _
          (rounds-emit n (both ∷ history) (extend text (proj₂ both))) λ more enough →
            subst (suc n ≤_) (sym (length-++ (proj₂ both))) (ℕₚ.+-mono-≤ one enough)

    -- Rounds that come after some tokens were emitted, if rounds complete to the target's law.
    after-more : ∀ n → (∀ history L text g →
        mean (rounds drafter n history text) (after-round target L text g) ≡ mean (plain L text) g) →
      ∀ history L text emitted g →
      mean (rounds drafter n history (extend text emitted)) (λ more → after-round target L text g (emitted ++ more)) ≡
      after-round target L text g emitted
    after-more n law history zero    text []                   g = law history zero text g
    after-more n law history (suc L) text []                   g = law history (suc L) text g
    after-more n law history zero    text ((kind , x) ∷ emitted) g =
      law history zero (extend (x ∷ text) emitted) (λ _ → g [])
    after-more n law history (suc L) text ((kind , x) ∷ emitted) g = begin
      mean d (λ more → after-round target (suc L) text g ((kind , x) ∷ emitted ++ more))
        ≡⟨ mean-cong d (λ more → complete-more target (suc L) text g kind x (emitted ++ more)) ⟩
      mean d (λ more → after-round target L (x ∷ text) (λ rest → g (x ∷ rest)) (emitted ++ more))
        ≡⟨ after-more n law history L (x ∷ text) emitted (λ rest → g (x ∷ rest)) ⟩
      after-round target L (x ∷ text) (λ rest → g (x ∷ rest)) emitted
        ≡⟨ sym (complete-more target (suc L) text g kind x emitted) ⟩
      after-round target (suc L) text g ((kind , x) ∷ emitted) ∎
      where d = rounds drafter n history (extend (x ∷ text) emitted)

    -- Any number of rounds, completed by the target, has the target's law.
    rounds-law : ∀ n history L text g →
      mean (rounds drafter n history text) (after-round target L text g) ≡ mean (plain L text) g
    rounds-law zero    history zero    text g = refl
    rounds-law zero    history (suc L) text g = refl
    rounds-law (suc n) history L       text g = begin
      mean (rounds drafter (suc n) history text) (after-round target L text g)
        ≡⟨ mean->>= (round draft text) _ (after-round target L text g) ⟩
      mean (round draft text) _
        ≡⟨ mean-cong (round draft text) (λ both → trans
             (mean->>= (rounds drafter n (both ∷ history) (extend text (proj₂ both)))
               (λ more → done (proj₂ both ++ more)) (after-round target L text g))
             (after-more n (rounds-law n) (both ∷ history) L text (proj₂ both) g)) ⟩
      mean (round draft text) (λ both → after-round target L text g (proj₂ both))
        ≡⟨ sym (mean->>= (round draft text) (λ both → complete L text (proj₂ both)) g) ⟩
      mean (round draft text >>= (λ both → complete L text (proj₂ both))) g
        ≡⟨ round-law target draft L text g ⟩
      mean (plain L text) g ∎
      where draft = drafter history text

    -- With tokens enough, completing is cutting.
    enough : ∀ L text emitted → L ≤ length emitted → complete L text emitted ≡ done (take L (map proj₂ emitted))
    enough zero    text emitted                l       = refl
    enough (suc L) text ((kind , x) ∷ emitted) (s≤s l) =
      cong (_>>= (λ rest → done (x ∷ rest))) (enough L (x ∷ text) emitted l)

    -- So many rounds emit as many tokens at least: the first L of them are as the target's own.
    generation-law : ∀ n history L text g → L ≤ n →
      mean (rounds drafter n history text) (λ emitted → g (take L (map proj₂ emitted))) ≡ mean (plain L text) g
    generation-law n history L text g l = trans
      (mean-always (rounds drafter n history text) (rounds-emit n history text)
        (λ emitted many → sym (cong (λ d → mean d g) (enough L text emitted (ℕₚ.≤-trans l many)))))
      (rounds-law n history L text g)
