{-# OPTIONS --safe --without-K #-}

-- (4) A round, completed by the target, has the target's law: for every text, every tree of proposals, every length.
--
-- A round alone has not: with p = (1/2, 1/2), q = (1, 0), K = 1, every round of two tokens begins with 0. So the
-- claim is about the round's tokens followed by as many of the target's own as are missing. By induction on the
-- tree; drawing all proposals before any is judged, as the program does, makes the proof swap the two.

open import Data.Nat using (ℕ; _<_)
open import Fractions using (Chances)
module Round (chances : Chances) (D : ℕ) (D>0 : 0 < D) (v : ℕ) where

open import Data.Fin using (Fin)
open import Data.List using (List; []; _∷_; length)
open import Data.Nat using (zero; suc)
open import Data.Product using (_×_; _,_; proj₂)
open import Relation.Binary.PropositionalEquality
open import Law chances
open import Sampler
open import Step chances
open import Units
open Chances chances
open ≡-Reasoning

open Programs D v

module _ (target : Text → Distribution) where

  open Target target

  private
    p : Text → Weights (suc v)
    p text = weight (target text)

  draw-law : ∀ purpose text q (g : Token → C) → mean (draw purpose text q) g ≡ inv D * sum (λ x → weight q x · g x)
  draw-law purpose text q g = cong (inv D *_)
    (trans (cong (λ n → count n (λ u → g (pick (weight q) u))) (sym (whole q))) (pick-law (weight q) g))

  -- A distribution's mean of a number is that number.
  steady : ∀ q c → inv D * sum (λ x → weight q x · c) ≡ c
  steady q c = trans (cong (inv D *_) (trans (sum-const (weight q) c) (cong (_· c) (whole q)))) (cancel′ D>0 c)

  -- What the target makes of the first L tokens after a text, if x is the first of them.
  after : ℕ → Text → (List Token → C) → Token → C
  after zero    text g x = g []
  after (suc L) text g x = mean (plain L (x ∷ text)) (λ rest → g (x ∷ rest))

  plain-law : ∀ L text g → mean (plain L text) g ≡ inv D * sum (λ x → p text x · after L text g x)
  plain-law zero    text g = sym (steady (target text) (g []))
  plain-law (suc L) text g = begin
    mean (plain (suc L) text) g
      ≡⟨ mean->>= (draw bonus text (target text)) (λ x → plain L (x ∷ text) >>= λ rest → done (x ∷ rest)) g ⟩
    mean (draw bonus text (target text)) (λ x → mean (plain L (x ∷ text) >>= λ rest → done (x ∷ rest)) g)
      ≡⟨ mean-cong (draw bonus text (target text)) (λ x → mean->>= (plain L (x ∷ text)) (λ rest → done (x ∷ rest)) g) ⟩
    mean (draw bonus text (target text)) (after (suc L) text g)
      ≡⟨ draw-law bonus text (target text) (after (suc L) text g) ⟩
    inv D * sum (λ x → p text x · after (suc L) text g x) ∎

  -- The same, of what a round has emitted.
  after-round : ℕ → Text → (List Token → C) → Emitted → C
  after-round L text g emitted = mean (complete L text emitted) g

  complete-one : ∀ L text g kind x → after-round L text g ((kind , x) ∷ []) ≡ after L text g x
  complete-one zero          text g kind x = refl
  complete-one (suc zero)    text g kind x = refl
  complete-one (suc (suc L)) text g kind x = mean->>= (plain (suc L) (x ∷ text)) _ g

  -- After an accepted x the claim is about one token less, from a text that is one longer.
  onward : ℕ → Text → (List Token → C) → Token → Emitted → C
  onward zero    text g x emitted = g []
  onward (suc L) text g x emitted = after-round L (x ∷ text) (λ rest → g (x ∷ rest)) emitted

  complete-more : ∀ L text g kind x emitted →
    after-round L text g ((kind , x) ∷ emitted) ≡ onward L text g x emitted
  complete-more zero    text g kind x emitted = refl
  complete-more (suc L) text g kind x emitted = mean->>= (complete L (x ∷ text) emitted) _ g

  -- What the draft does can't change a number that doesn't depend on it.
  proposals-const : ∀ text draft c → mean (proposals text draft) (λ _ → c) ≡ c
  proposals-const text stop         c = refl
  proposals-const text (q ⟨ next ⟩) c = begin
    mean (proposals text (q ⟨ next ⟩)) (λ _ → c)
      ≡⟨ mean->>= (draw propose text q) (λ x → proposals (x ∷ text) (next x) >>= λ path → done ((q , x) ∷ path)) (λ _ → c) ⟩
    mean (draw propose text q) (λ x → mean (proposals (x ∷ text) (next x) >>= λ path → done ((q , x) ∷ path)) (λ _ → c))
      ≡⟨ mean-cong (draw propose text q) (λ x → trans
           (mean->>= (proposals (x ∷ text) (next x)) (λ path → done ((q , x) ∷ path)) (λ _ → c)) (proposals-const (x ∷ text) (next x) c)) ⟩
    mean (draw propose text q) (λ _ → c)
      ≡⟨ draw-law propose text q (λ _ → c) ⟩
    inv D * sum (λ x → weight q x · c)
      ≡⟨ steady q c ⟩
    c ∎

  -- Judging one proposal, seen from what comes of it.
  judged-law : ∀ L text g q x path →
    mean (judged text ((q , x) ∷ path)) (after-round L text g) ≡
    inv (weight q x) *
      ( kept (p text) (weight q) x · mean (judged (x ∷ text) path) (onward L text g x)
      + residual (weight q) (p text) x ·
          (inv (total (residual (p text) (weight q))) * sum (λ y → residual (p text) (weight q) y · after L text g y)))
  judged-law L text g q x path = begin
    mean (judged text ((q , x) ∷ path)) (after-round L text g)
      ≡⟨ mean->>= (verdict (length text) (p text) (weight q) x) _ (after-round L text g) ⟩
    mean (verdict (length text) (p text) (weight q) x) _
      ≡⟨ verdict-law (length text) (p text) (weight q) x _ ⟩
    inv (weight q x) * (kept (p text) (weight q) x · _ + residual (weight q) (p text) x · _)
      ≡⟨ cong₂ (λ a b → inv (weight q x) * (kept (p text) (weight q) x · a + residual (weight q) (p text) x ·
           (inv (total (residual (p text) (weight q))) * b)))
           (trans (mean->>= (judged (x ∷ text) path) _ (after-round L text g))
                  (mean-cong (judged (x ∷ text) path) (complete-more L text g accepted x)))
           (sum-cong (λ y → cong (residual (p text) (weight q) y ·_) (complete-one L text g recovered y))) ⟩
    _ ∎

  mutual

    -- Proposals drawn, then judged, then completed: the target's own law.
    core : ∀ draft L text g →
      mean (proposals text draft) (λ path → mean (judged text path) (after-round L text g)) ≡ mean (plain L text) g
    core stop L text g = begin
      mean (judged text []) (after-round L text g)
        ≡⟨ mean->>= (draw bonus text (target text)) (λ x → done ((drawn , x) ∷ [])) (after-round L text g) ⟩
      mean (draw bonus text (target text)) (λ x → after-round L text g ((drawn , x) ∷ []))
        ≡⟨ mean-cong (draw bonus text (target text)) (complete-one L text g drawn) ⟩
      mean (draw bonus text (target text)) (after L text g)
        ≡⟨ draw-law bonus text (target text) (after L text g) ⟩
      inv D * sum (λ x → p text x · after L text g x)
        ≡⟨ sym (plain-law L text g) ⟩
      mean (plain L text) g ∎
    core (q ⟨ next ⟩) L text g = begin
      mean (proposals text (q ⟨ next ⟩)) judge-all
        ≡⟨ mean->>= (draw propose text q) (λ x → proposals (x ∷ text) (next x) >>= λ path → done ((q , x) ∷ path)) judge-all ⟩
      mean (draw propose text q) (λ x → mean (proposals (x ∷ text) (next x) >>= λ path → done ((q , x) ∷ path)) judge-all)
        ≡⟨ mean-cong (draw propose text q) (λ x → trans
             (mean->>= (proposals (x ∷ text) (next x)) (λ path → done ((q , x) ∷ path)) judge-all) (one x)) ⟩
      mean (draw propose text q) weighed
        ≡⟨ draw-law propose text q weighed ⟩
      inv D * sum (λ x → weight q x · weighed x)
        ≡⟨ cong (inv D *_) (balance (p text) (weight q) (after L text g) (trans (whole (target text)) (sym (whole q)))) ⟩
      inv D * sum (λ x → p text x · after L text g x)
        ≡⟨ sym (plain-law L text g) ⟩
      mean (plain L text) g ∎
      where
      judge-all : Path → C
      judge-all path = mean (judged text path) (after-round L text g)
      R : C
      R = inv (total (residual (p text) (weight q))) * sum (λ y → residual (p text) (weight q) y · after L text g y)
      weighed : Token → C
      weighed x = inv (weight q x) * (kept (p text) (weight q) x · after L text g x + residual (weight q) (p text) x · R)
      one : ∀ x → mean (proposals (x ∷ text) (next x)) (λ path → judge-all ((q , x) ∷ path)) ≡ weighed x
      one x = begin
        mean d (λ path → judge-all ((q , x) ∷ path))
          ≡⟨ mean-cong d {λ path → judge-all ((q , x) ∷ path)}
               {λ path → inv (weight q x) * (k · mean (judged (x ∷ text) path) (onward L text g x) + r · R)}
               (judged-law L text g q x) ⟩
        mean d (λ path → inv (weight q x) * (k · mean (judged (x ∷ text) path) (onward L text g x) + r · R))
          ≡⟨ mean-* d (inv (weight q x)) (λ path → k · mean (judged (x ∷ text) path) (onward L text g x) + r · R) ⟩
        inv (weight q x) * mean d (λ path → k · mean (judged (x ∷ text) path) (onward L text g x) + r · R)
          ≡⟨ cong (inv (weight q x) *_) (trans (mean-+ d _ _) (cong₂ _+_
               (trans (mean-· d k _) (cong (k ·_) (core-onward (next x) L text g x)))
               (proposals-const (x ∷ text) (next x) (r · R)))) ⟩
        weighed x ∎
        where
        d = proposals (x ∷ text) (next x)
        k = kept (p text) (weight q) x
        r = residual (weight q) (p text) x

    core-onward : ∀ draft L text g x →
      mean (proposals (x ∷ text) draft) (λ path → mean (judged (x ∷ text) path) (onward L text g x)) ≡ after L text g x
    core-onward draft zero    text g x = core draft 0 (x ∷ text) (λ _ → g [])
    core-onward draft (suc L) text g x = core draft L (x ∷ text) (λ rest → g (x ∷ rest))

  -- The round as the program runs it.
  round-law : ∀ draft L text g →
    mean (round draft text >>= λ where (path , emitted) → complete L text emitted) g ≡ mean (plain L text) g
  round-law draft L text g = begin
    mean (round draft text >>= rest) g
      ≡⟨ mean->>= (round draft text) rest g ⟩
    mean (round draft text) (λ both → mean (rest both) g)
      ≡⟨ mean->>= (proposals text draft) _ _ ⟩
    mean (proposals text draft) _
      ≡⟨ mean-cong (proposals text draft) (λ path → mean->>= (judged text path) _ _) ⟩
    mean (proposals text draft) (λ path → mean (judged text path) (after-round L text g))
      ≡⟨ core draft L text g ⟩
    mean (plain L text) g ∎
    where
    rest : Path × Emitted → Draws (List Token)
    rest (path , emitted) = complete L text emitted
