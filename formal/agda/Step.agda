{-# OPTIONS --safe --without-K #-}

-- (3) The law of one step: a proposal is drawn from q, judged, and kept or replaced; what comes out has the law p.
--
-- It is proved on the program that ships (Sampler.verdict), by counting the values of `below`: of the D coins that
-- draw the proposal, q[x] give x; of the q[x] that judge it, min(p, q)[x] keep it; of the Z that recover,
-- max(p - q, 0)[y] give y. Z = 0 needs no case of its own in the claim: then nothing is ever rejected.

open import Fractions using (Chances)
module Step (chances : Chances) where

open import Data.Bool using (Bool; true; false; if_then_else_)
open import Data.Fin using (Fin; zero; suc)
open import Data.Nat using (ℕ; zero; suc; _<ᵇ_; _∸_; _⊓_; _<_; z≤n; s≤s) renaming (_+_ to _+ᴺ_)
import Data.Nat.Properties as ℕₚ
open import Data.Product using (_×_; _,_)
open import Relation.Binary.PropositionalEquality
open import Law chances
open import Sampler
open import Units
open Chances chances
open ≡-Reasoning

if-suc : ∀ {n} (b : Bool) (x : Fin n) (g : Fin (suc n) → C) →
  g (if b then zero else suc x) ≡ (if b then g zero else g (suc x))
if-suc false x g = refl
if-suc true  x g = refl

<ᵇ-shift : ∀ c u m → (c +ᴺ u <ᵇ c +ᴺ m) ≡ (u <ᵇ m)
<ᵇ-shift zero    u m = refl
<ᵇ-shift (suc c) u m = <ᵇ-shift c u m

pickFrom-law : ∀ {n} reached (w : Weights (suc n)) (g : Fin (suc n) → C) →
  count (total w) (λ u → g (pickFrom reached w (reached +ᴺ u))) ≡ sum (λ x → w x · g x)
pickFrom-law {zero}  reached w g = begin
  count (w zero +ᴺ 0) (λ _ → g zero)  ≡⟨ count-const (w zero +ᴺ 0) (g zero) ⟩
  (w zero +ᴺ 0) · g zero              ≡⟨ +-· (w zero) 0 (g zero) ⟩
  w zero · g zero + 0#                ∎
pickFrom-law {suc n} reached w g = begin
  count (m +ᴺ k) (λ u → g (pickFrom reached w (reached +ᴺ u)))
    ≡⟨ count-cong (m +ᴺ k) (λ u → trans (if-suc (reached +ᴺ u <ᵇ reached +ᴺ m) (pickFrom (reached +ᴺ m) rest (reached +ᴺ u)) g)
         (cong (λ b → if b then g zero else later (reached +ᴺ u)) (<ᵇ-shift reached u m))) ⟩
  count (m +ᴺ k) (λ u → if u <ᵇ m then g zero else later (reached +ᴺ u))
    ≡⟨ count-split m k (λ _ → g zero) (λ u → later (reached +ᴺ u)) ⟩
  count m (λ _ → g zero) + count k (λ u → later (reached +ᴺ (m +ᴺ u)))
    ≡⟨ cong₂ _+_ (count-const m (g zero))
         (count-cong k (λ u → cong later (sym (ℕₚ.+-assoc reached m u)))) ⟩
  m · g zero + count k (λ u → later (reached +ᴺ m +ᴺ u))
    ≡⟨ cong (m · g zero +_) (pickFrom-law (reached +ᴺ m) rest (λ x → g (suc x))) ⟩
  m · g zero + sum (λ x → rest x · g (suc x)) ∎
  where
  m = w zero
  rest : Weights (suc n)
  rest x = w (suc x)
  k = total rest
  later : ℕ → C
  later coin = g (suc (pickFrom (reached +ᴺ m) rest coin))

-- The coins of `pick`, counted: as many give a token as it has units.
pick-law : ∀ {n} (w : Weights (suc n)) (g : Fin (suc n) → C) →
  count (total w) (λ u → g (pick w u)) ≡ sum (λ x → w x · g x)
pick-law = pickFrom-law 0

-- The coins of a verdict, counted.
recovery : ∀ {n} → Weights (suc n) → Weights (suc n) → (Kind × Fin (suc n) → C) → C
recovery p q g = inv Z * sum (λ y → residual p q y · g (recovered , y))
  where Z = total (residual p q)

verdict-law : ∀ {n} position (p q : Weights (suc n)) x g → mean (verdict position p q x) g ≡
  inv (q x) * (kept p q x · g (accepted , x) + residual q p x · recovery p q g)
verdict-law position p q x g = cong (inv (q x) *_) (begin
  count (q x) (λ u → mean (if u <ᵇ p x then done (accepted , x) else recovering) g)
    ≡⟨ count-cong (q x) (λ u → mean-if (u <ᵇ p x) _ _ g) ⟩
  count (q x) (λ u → if u <ᵇ p x then g (accepted , x) else mean recovering g)
    ≡⟨ count-verdict (p x) (q x) (g (accepted , x)) (mean recovering g) ⟩
  kept p q x · g (accepted , x) + residual q p x · mean recovering g
    ≡⟨ cong (λ c → kept p q x · g (accepted , x) + residual q p x · (inv (total (residual p q)) * c))
         (pick-law (residual p q) (λ y → g (recovered , y))) ⟩
  kept p q x · g (accepted , x) + residual q p x · recovery p q g ∎)
  where
  recovering = below (recover , position) (total (residual p q)) λ u → done (recovered , pick (residual p q) u)

-- q[x] times a mean over q[x] coins is what the coins gave; q[x] = 0 has none, and is never drawn.
clear : ∀ p q a b → q · (inv q * ((p ⊓ q) · a + (q ∸ p) · b)) ≡ (p ⊓ q) · a + (q ∸ p) · b
clear p (suc q) a b = cancel (s≤s z≤n) _
clear p zero    a b = sym (begin
  (p ⊓ 0) · a + (0 ∸ p) · b  ≡⟨ cong₂ (λ m n → m · a + n · b) (ℕₚ.⊓-zeroʳ p) (ℕₚ.0∸n≡0 p) ⟩
  0# + 0#                    ≡⟨ +-identityˡ 0# ⟩
  0#                         ∎)

-- P(reject) times the residual over Z is the residual, whether or not there is one.
recovered-mass : ∀ {n} (r : Weights n) (f : Fin n → C) →
  total r · (inv (total r) * sum (λ y → r y · f y)) ≡ sum (λ y → r y · f y)
recovered-mass r f with total r | total-0 r
... | suc Z | _    = cancel (s≤s z≤n) _
... | zero  | none = sym (sum-0 (λ y → cong (_· f y) (none refl y)))

-- The arithmetic of a step, for whatever f comes of a token: the q's are gone.
balance : ∀ {n} (p q : Weights (suc n)) (f : Fin (suc n) → C) → total p ≡ total q →
  let recovering = inv (total (residual p q)) * sum (λ y → residual p q y · f y) in
  sum (λ x → q x · (inv (q x) * (kept p q x · f x + residual q p x · recovering))) ≡ sum (λ x → p x · f x)
balance p q f even = begin
  sum (λ x → q x · (inv (q x) * (kept p q x · f x + residual q p x · R)))
    ≡⟨ sum-cong (λ x → clear (p x) (q x) (f x) R) ⟩
  sum (λ x → kept p q x · f x + residual q p x · R)
    ≡⟨ sum-+ (λ x → kept p q x · f x) (λ x → residual q p x · R) ⟩
  sum (λ x → kept p q x · f x) + sum (λ x → residual q p x · R)
    ≡⟨ cong (sum (λ x → kept p q x · f x) +_) (begin
         sum (λ x → residual q p x · R)   ≡⟨ sum-const (residual q p) R ⟩
         total (residual q p) · R         ≡⟨ cong (_· R) (symmetric q p (sym even)) ⟩
         total (residual p q) · R         ≡⟨ recovered-mass (residual p q) f ⟩
         sum (λ x → residual p q x · f x) ∎) ⟩
  sum (λ x → kept p q x · f x) + sum (λ x → residual p q x · f x)
    ≡⟨ sym (sum-+ (λ x → kept p q x · f x) (λ x → residual p q x · f x)) ⟩
  sum (λ x → kept p q x · f x + residual p q x · f x)
    ≡⟨ sum-cong (λ x → trans (sym (+-· (kept p q x) (residual p q x) (f x))) (cong (_· f x) (emission p q x))) ⟩
  sum (λ x → p x · f x) ∎
  where R = inv (total (residual p q)) * sum (λ y → residual p q y · f y)

-- One step: draw from q with one coin of D, judge, keep or recover. Then the token alone is looked at.
step : ∀ {n} → ℕ → ℕ → Weights (suc n) → Weights (suc n) → Draws (Fin (suc n))
step D position p q = below (propose , position) D λ u → verdict position p q (pick q u) >>= λ where
  (kind , y) → done y

step-law : ∀ {n} D position (p q : Weights (suc n)) → total p ≡ D → total q ≡ D → ∀ g →
  mean (step D position p q) g ≡ inv D * sum (λ x → p x · g x)
step-law D position p q p-whole q-whole g = cong (inv D *_) (begin
  count D (λ u → mean (verdict position p q (pick q u) >>= token) g)
    ≡⟨ count-cong D (λ u → trans (mean->>= (verdict position p q (pick q u)) token g)
         (verdict-law position p q (pick q u) _)) ⟩
  count D (λ u → f (pick q u))
    ≡⟨ cong (λ n → count n (λ u → f (pick q u))) (sym q-whole) ⟩
  count (total q) (λ u → f (pick q u))
    ≡⟨ pick-law q f ⟩
  sum (λ x → q x · f x)
    ≡⟨ balance p q g (trans p-whole (sym q-whole)) ⟩
  sum (λ x → p x · g x) ∎)
  where
  token : Kind × Fin _ → Draws (Fin _)
  token (kind , y) = done y
  f : Fin _ → C
  f x = inv (q x) * (kept p q x · g x + residual q p x · (inv (total (residual p q)) * sum (λ y → residual p q y · g y)))
