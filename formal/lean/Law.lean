prelude
set_option autoImplicit false
universe u v

/-! What `residual` relies on, in whole units over one denominator: docs/exactness.md has the table.

A `prelude` file: everything used is defined here, every proof is a term that the kernel checks, and the file checks with
no library at all as well as under an ordinary Lean 4 install. -/

set_option bootstrap.inductiveCheckResultingUniverse false in
inductive PUnit : Sort u where
  | unit : PUnit

inductive Eq {α : Sort u} : α → α → Prop where
  | refl (a : α) : Eq a a

theorem Eq.symm {α : Sort u} {a b : α} (h : Eq a b) : Eq b a :=
  Eq.rec (motive := fun x _ => Eq x a) (Eq.refl a) h

theorem Eq.trans {α : Sort u} {a b c : α} (h : Eq a b) (k : Eq b c) : Eq a c :=
  Eq.rec (motive := fun x _ => Eq a x) h k

theorem congrArg {α : Sort u} {β : Sort v} {a b : α} (f : α → β) (h : Eq a b) : Eq (f a) (f b) :=
  Eq.rec (motive := fun x _ => Eq (f a) (f x)) (Eq.refl (f a)) h

theorem congr2 {α β γ : Type} {a b : α} {c d : β} (f : α → β → γ) (h : Eq a b) (k : Eq c d) :
    Eq (f a c) (f b d) :=
  Eq.trans (congrArg (fun t => f t c) h) (congrArg (f b) k)

/-- natural numbers -/
inductive N where
  | z : N
  | s (n : N) : N

namespace N

noncomputable def add (m n : N) : N :=
  N.rec (motive := fun _ => N) n (fun _ r => s r) m

noncomputable def mul (m n : N) : N :=
  N.rec (motive := fun _ => N) z (fun _ r => add n r) m

noncomputable def min (m : N) : N → N :=
  N.rec (motive := fun _ => N → N) (fun _ => z)
    (fun _ ih n => N.rec (motive := fun _ => N) z (fun n' _ => s (ih n')) n) m

/-- truncated subtraction, `max (m - n) 0` -/
noncomputable def sub (m : N) : N → N :=
  N.rec (motive := fun _ => N → N) (fun _ => z)
    (fun m' ih n => N.rec (motive := fun _ => N) (s m') (fun n' _ => ih n') n) m

theorem add_zero (n : N) : Eq (add n z) n :=
  N.rec (motive := fun n => Eq (add n z) n) (Eq.refl z) (fun _ ih => congrArg s ih) n

theorem add_succ (m n : N) : Eq (add m (s n)) (s (add m n)) :=
  N.rec (motive := fun m => Eq (add m (s n)) (s (add m n))) (Eq.refl (s n))
    (fun _ ih => congrArg s ih) m

theorem add_comm (m n : N) : Eq (add m n) (add n m) :=
  N.rec (motive := fun m => Eq (add m n) (add n m)) (Eq.symm (add_zero n))
    (fun m ih => Eq.trans (congrArg s ih) (Eq.symm (add_succ n m))) m

theorem add_assoc (a b c : N) : Eq (add (add a b) c) (add a (add b c)) :=
  N.rec (motive := fun a => Eq (add (add a b) c) (add a (add b c))) (Eq.refl (add b c))
    (fun _ ih => congrArg s ih) a

theorem interchange (a b c d : N) :
    Eq (add (add a b) (add c d)) (add (add a c) (add b d)) :=
  Eq.trans (add_assoc a b (add c d))
    (Eq.trans (congrArg (add a)
      (Eq.trans (Eq.symm (add_assoc b c d))
        (Eq.trans (congrArg (fun t => add t d) (add_comm b c)) (add_assoc c b d))))
      (Eq.symm (add_assoc a c (add b d))))

theorem mul_add (a b c : N) : Eq (mul a (add b c)) (add (mul a b) (mul a c)) :=
  N.rec (motive := fun a => Eq (mul a (add b c)) (add (mul a b) (mul a c))) (Eq.refl z)
    (fun a ih => Eq.trans (congrArg (add (add b c)) ih) (interchange b c (mul a b) (mul a c))) a

theorem sub_zero (n : N) : Eq (sub n z) n :=
  N.rec (motive := fun n => Eq (sub n z) n) (Eq.refl z) (fun n _ => Eq.refl (s n)) n

theorem add_sub_cancel (a b : N) : Eq (sub (add a b) a) b :=
  N.rec (motive := fun a => Eq (sub (add a b) a) b) (sub_zero b) (fun _ ih => ih) a

/-- the pointwise emission identity: `min p q + max (p - q) 0 = p` -/
theorem min_add_sub (p : N) : (q : N) → Eq (add (min p q) (sub p q)) p :=
  N.rec (motive := fun p => (q : N) → Eq (add (min p q) (sub p q)) p)
    (fun _ => Eq.refl z)
    (fun p ih q => N.rec (motive := fun q => Eq (add (min (s p) q) (sub (s p) q)) (s p))
      (Eq.refl (s p)) (fun q' _ => congrArg s (ih q')) q) p

end N

namespace N

theorem mul_zero (n : N) : Eq (mul n z) z :=
  N.rec (motive := fun n => Eq (mul n z) z) (Eq.refl z) (fun _ ih => ih) n

theorem add_mul (a b c : N) : Eq (mul (add a b) c) (add (mul a c) (mul b c)) :=
  N.rec (motive := fun a => Eq (mul (add a b) c) (add (mul a c) (mul b c))) (Eq.refl (mul b c))
    (fun a ih => Eq.trans (congrArg (add c) ih) (Eq.symm (add_assoc c (mul a c) (mul b c)))) a

theorem mul_swap (a b c : N) : Eq (mul a (mul b c)) (mul b (mul a c)) :=
  N.rec (motive := fun a => Eq (mul a (mul b c)) (mul b (mul a c))) (Eq.symm (mul_zero b))
    (fun a ih => Eq.trans (congrArg (add (mul b c)) ih) (Eq.symm (mul_add b c (mul a c)))) a

theorem min_comm (p : N) : (q : N) → Eq (min p q) (min q p) :=
  N.rec (motive := fun p => (q : N) → Eq (min p q) (min q p))
    (fun q => N.rec (motive := fun q => Eq (min z q) (min q z)) (Eq.refl z) (fun _ _ => Eq.refl z) q)
    (fun p ih q => N.rec (motive := fun q => Eq (min (s p) q) (min q (s p))) (Eq.refl z)
      (fun q' _ => congrArg s (ih q')) q) p

end N

open N

/-- the finite type with `n` elements -/
inductive Fin : N → Type where
  | zero {n : N} : Fin (s n)
  | succ {n : N} (i : Fin n) : Fin (s n)

noncomputable def sum (n : N) : (Fin n → N) → N :=
  N.rec (motive := fun n => (Fin n → N) → N) (fun _ => z)
    (fun _ ih f => add (f Fin.zero) (ih (fun i => f (Fin.succ i)))) n

theorem sum_congr (n : N) : (f g : Fin n → N) → ((x : Fin n) → Eq (f x) (g x)) →
    Eq (sum n f) (sum n g) :=
  N.rec (motive := fun n => (f g : Fin n → N) → ((x : Fin n) → Eq (f x) (g x)) →
      Eq (sum n f) (sum n g))
    (fun _ _ _ => Eq.refl z)
    (fun _ ih f g h => congr2 add (h Fin.zero)
      (ih (fun i => f (Fin.succ i)) (fun i => g (Fin.succ i)) (fun i => h (Fin.succ i)))) n

theorem sum_add (n : N) : (f g : Fin n → N) →
    Eq (sum n (fun x => add (f x) (g x))) (add (sum n f) (sum n g)) :=
  N.rec (motive := fun n => (f g : Fin n → N) →
      Eq (sum n (fun x => add (f x) (g x))) (add (sum n f) (sum n g)))
    (fun _ _ => Eq.refl z)
    (fun n ih f g => Eq.trans
      (congrArg (add (add (f Fin.zero) (g Fin.zero)))
        (ih (fun i => f (Fin.succ i)) (fun i => g (Fin.succ i))))
      (interchange (f Fin.zero) (g Fin.zero)
        (sum n (fun i => f (Fin.succ i))) (sum n (fun i => g (Fin.succ i))))) n

/-- accepted mass `q(x) * min(1, p(x)/q(x)) = min(p(x), q(x))` -/
noncomputable def acc {n : N} (p q : Fin n → N) (x : Fin n) : N := min (p x) (q x)
/-- unnormalised residual `max(p(x) - q(x), 0)` -/
noncomputable def res {n : N} (p q : Fin n → N) (x : Fin n) : N := sub (p x) (q x)

/-- pointwise emission identity -/
theorem emission {n : N} (p q : Fin n → N) (x : Fin n) :
    Eq (add (acc p q x) (res p q x)) (p x) :=
  min_add_sub (p x) (q x)

/-- `Σ min(p,q) + Σ max(p-q,0) = Σ p` -/
theorem total {n : N} (p q : Fin n → N) :
    Eq (add (sum n (acc p q)) (sum n (res p q))) (sum n p) :=
  Eq.trans (Eq.symm (sum_add n (acc p q) (res p q)))
    (sum_congr n (fun x => add (acc p q x) (res p q x)) p (emission p q))

/-- rejection mass `d - Σ min(p,q)` is the residual normaliser `Z = Σ max(p-q,0)` -/
theorem rejection_mass {n : N} (p q : Fin n → N) (d : N) (h : Eq (sum n p) d) :
    Eq (sub d (sum n (acc p q))) (sum n (res p q)) :=
  Eq.trans (congrArg (fun t => sub t (sum n (acc p q))) (Eq.symm (Eq.trans (total p q) h)))
    (add_sub_cancel (sum n (acc p q)) (sum n (res p q)))

theorem sum_mul (n : N) (c : N) : (f : Fin n → N) → Eq (sum n (fun x => mul c (f x))) (mul c (sum n f)) :=
  N.rec (motive := fun n => (f : Fin n → N) → Eq (sum n (fun x => mul c (f x))) (mul c (sum n f)))
    (fun _ => Eq.symm (mul_zero c))
    (fun n ih f => Eq.trans (congrArg (add (mul c (f Fin.zero))) (ih (fun i => f (Fin.succ i))))
      (Eq.symm (mul_add c (f Fin.zero) (sum n (fun i => f (Fin.succ i)))))) n

theorem sum_const (n : N) (c : N) : (w : Fin n → N) → Eq (sum n (fun x => mul (w x) c)) (mul (sum n w) c) :=
  N.rec (motive := fun n => (w : Fin n → N) → Eq (sum n (fun x => mul (w x) c)) (mul (sum n w) c))
    (fun _ => Eq.refl z)
    (fun n ih w => Eq.trans (congrArg (add (mul (w Fin.zero) c)) (ih (fun i => w (Fin.succ i))))
      (Eq.symm (add_mul (w Fin.zero) (sum n (fun i => w (Fin.succ i))) c))) n

/-- with equal totals, p exceeds q by as much as q exceeds p -/
theorem symmetric {n : N} (p q : Fin n → N) (h : Eq (sum n p) (sum n q)) :
    Eq (sum n (res q p)) (sum n (res p q)) :=
  Eq.trans (Eq.symm (rejection_mass q p (sum n q) (Eq.refl (sum n q))))
    (Eq.trans (congr2 sub (Eq.symm h)
      (sum_congr n (acc q p) (acc p q) (fun x => min_comm (q x) (p x))))
      (rejection_mass p q (sum n p) (Eq.refl (sum n p))))

/-! Programs: the coins of `below`, counted. -/

inductive B where
  | f : B
  | t : B

noncomputable def ite {α : Type} (b : B) (x y : α) : α := B.rec (motive := fun _ => α) y x b

noncomputable def lt (m n : N) : B :=
  N.rec (motive := fun _ => N → B) (fun _ => B.f)
    (fun _ ih m => N.rec (motive := fun _ => B) B.t (fun m' _ => ih m') m) n m

/-- the sum of f over the values of below(n) -/
noncomputable def count (n : N) : (N → N) → N :=
  N.rec (motive := fun _ => (N → N) → N) (fun _ => z) (fun _ ih f => add (f z) (ih (fun u => f (s u)))) n

/-- the first token whose cumulative sum is greater than the coin; `reached` is the sum of the tokens before -/
noncomputable def pickFrom (n : N) : N → (Fin (s n) → N) → N → Fin (s n) :=
  N.rec (motive := fun n => N → (Fin (s n) → N) → N → Fin (s n)) (fun _ _ _ => Fin.zero)
    (fun _ ih reached w coin => ite (lt coin (add reached (w Fin.zero))) Fin.zero
      (Fin.succ (ih (add reached (w Fin.zero)) (fun i => w (Fin.succ i)) coin))) n

noncomputable def pick {n : N} (w : Fin (s n) → N) (coin : N) : Fin (s n) := pickFrom n z w coin

theorem count_const (n c : N) : Eq (count n (fun _ => c)) (mul n c) :=
  N.rec (motive := fun n => Eq (count n (fun _ => c)) (mul n c)) (Eq.refl z) (fun _ ih => congrArg (add c) ih) n

theorem count_congr (n : N) : (f g : N → N) → ((u : N) → Eq (f u) (g u)) → Eq (count n f) (count n g) :=
  N.rec (motive := fun n => (f g : N → N) → ((u : N) → Eq (f u) (g u)) → Eq (count n f) (count n g))
    (fun _ _ _ => Eq.refl z)
    (fun _ ih f g h => congr2 add (h z) (ih (fun u => f (s u)) (fun u => g (s u)) (fun u => h (s u)))) n

/-- of q coins, those below p: min(p, q); the others: max(q - p, 0) -/
theorem count_verdict (p : N) : (q a b : N) →
    Eq (count q (fun u => ite (lt u p) a b)) (add (mul (min p q) a) (mul (sub q p) b)) :=
  N.rec (motive := fun p => (q a b : N) →
      Eq (count q (fun u => ite (lt u p) a b)) (add (mul (min p q) a) (mul (sub q p) b)))
    (fun q _ b => Eq.trans (count_const q b) (congrArg (fun t => mul t b) (Eq.symm (sub_zero q))))
    (fun p ih q a b => N.rec
      (motive := fun q => Eq (count q (fun u => ite (lt u (s p)) a b)) (add (mul (min (s p) q) a) (mul (sub q (s p)) b)))
      (Eq.refl z)
      (fun q' _ => Eq.trans (congrArg (add a) (ih q' a b)) (Eq.symm (add_assoc a (mul (min p q') a) (mul (sub q' p) b)))) q) p

theorem count_split (m : N) : (k a : N) → (b : N → N) →
    Eq (count (add m k) (fun u => ite (lt u m) a (b u))) (add (mul m a) (count k (fun u => b (add m u)))) :=
  N.rec (motive := fun m => (k a : N) → (b : N → N) →
      Eq (count (add m k) (fun u => ite (lt u m) a (b u))) (add (mul m a) (count k (fun u => b (add m u)))))
    (fun k _ b => Eq.refl (count k b))
    (fun m ih k a b => Eq.trans (congrArg (add a) (ih k a (fun u => b (s u))))
      (Eq.symm (add_assoc a (mul m a) (count k (fun u => b (s (add m u))))))) m

theorem ite_map {α : Type} (g : α → N) (b : B) (x y : α) : Eq (g (ite b x y)) (ite b (g x) (g y)) :=
  B.rec (motive := fun b => Eq (g (ite b x y)) (ite b (g x) (g y))) (Eq.refl (g y)) (Eq.refl (g x)) b

theorem lt_shift (r u m : N) : Eq (lt (add r u) (add r m)) (lt u m) :=
  N.rec (motive := fun r => Eq (lt (add r u) (add r m)) (lt u m)) (Eq.refl (lt u m)) (fun _ ih => ih) r

theorem pickFrom_law (n : N) : (r : N) → (w : Fin (s n) → N) → (g : Fin (s n) → N) →
    Eq (count (sum (s n) w) (fun u => g (pickFrom n r w (add r u)))) (sum (s n) (fun x => mul (w x) (g x))) :=
  N.rec (motive := fun n => (r : N) → (w : Fin (s n) → N) → (g : Fin (s n) → N) →
      Eq (count (sum (s n) w) (fun u => g (pickFrom n r w (add r u)))) (sum (s n) (fun x => mul (w x) (g x))))
    (fun _ w g => Eq.trans (count_const (add (w Fin.zero) z) (g Fin.zero)) (add_mul (w Fin.zero) z (g Fin.zero)))
    (fun n ih r w g => Eq.trans
      (count_congr (sum (s (s n)) w) (fun u => g (pickFrom (s n) r w (add r u)))
        (fun u => ite (lt u (w Fin.zero)) (g Fin.zero)
          (g (Fin.succ (pickFrom n (add r (w Fin.zero)) (fun i => w (Fin.succ i)) (add r u)))))
        (fun u => Eq.trans
          (ite_map g (lt (add r u) (add r (w Fin.zero))) Fin.zero
            (Fin.succ (pickFrom n (add r (w Fin.zero)) (fun i => w (Fin.succ i)) (add r u))))
          (congrArg (fun b => ite b (g Fin.zero)
            (g (Fin.succ (pickFrom n (add r (w Fin.zero)) (fun i => w (Fin.succ i)) (add r u)))))
            (lt_shift r u (w Fin.zero)))))
      (Eq.trans
        (count_split (w Fin.zero) (sum (s n) (fun i => w (Fin.succ i))) (g Fin.zero)
          (fun u => g (Fin.succ (pickFrom n (add r (w Fin.zero)) (fun i => w (Fin.succ i)) (add r u)))))
        (congrArg (add (mul (w Fin.zero) (g Fin.zero)))
          (Eq.trans
            (count_congr (sum (s n) (fun i => w (Fin.succ i)))
              (fun u => g (Fin.succ (pickFrom n (add r (w Fin.zero)) (fun i => w (Fin.succ i)) (add r (add (w Fin.zero) u)))))
              (fun u => g (Fin.succ (pickFrom n (add r (w Fin.zero)) (fun i => w (Fin.succ i)) (add (add r (w Fin.zero)) u))))
              (fun u => congrArg
                (fun c => g (Fin.succ (pickFrom n (add r (w Fin.zero)) (fun i => w (Fin.succ i)) c)))
                (Eq.symm (add_assoc r (w Fin.zero) u))))
            (ih (add r (w Fin.zero)) (fun i => w (Fin.succ i)) (fun i => g (Fin.succ i))))))) n

/-- as many coins give a token as it has units -/
theorem pick_law {n : N} (w : Fin (s n) → N) (g : Fin (s n) → N) :
    Eq (count (sum (s n) w) (fun u => g (pick w u))) (sum (s n) (fun x => mul (w x) (g x))) :=
  pickFrom_law n z w g

/-- the pairs of a token x and a coin below q[x], all equally likely: what x gives if the coin is below p[x], and b else -/
noncomputable def judged {n : N} (p q : Fin n → N) (f : Fin n → N) (b : N) : N :=
  sum n (fun x => count (q x) (fun u => ite (lt u (p x)) (f x) b))

theorem judged_law {n : N} (p q f : Fin n → N) (b : N) (h : Eq (sum n p) (sum n q)) :
    Eq (judged p q f b) (add (sum n (fun x => mul (acc p q x) (f x))) (mul (sum n (res p q)) b)) :=
  Eq.trans (sum_congr n (fun x => count (q x) (fun u => ite (lt u (p x)) (f x) b))
      (fun x => add (mul (acc p q x) (f x)) (mul (res q p x) b))
      (fun x => count_verdict (p x) (q x) (f x) b))
    (Eq.trans (sum_add n (fun x => mul (acc p q x) (f x)) (fun x => mul (res q p x) b))
      (congrArg (add (sum n (fun x => mul (acc p q x) (f x))))
        (Eq.trans (sum_const n b (res q p)) (congrArg (fun t => mul t b) (symmetric p q h)))))

theorem balance {n : N} (p q f : Fin n → N) :
    Eq (add (sum n (fun x => mul (acc p q x) (f x))) (sum n (fun x => mul (res p q x) (f x))))
      (sum n (fun x => mul (p x) (f x))) :=
  Eq.trans (Eq.symm (sum_add n (fun x => mul (acc p q x) (f x)) (fun x => mul (res p q x) (f x))))
    (sum_congr n (fun x => add (mul (acc p q x) (f x)) (mul (res p q x) (f x))) (fun x => mul (p x) (f x))
      (fun x => Eq.trans (Eq.symm (add_mul (acc p q x) (res p q x) (f x)))
        (congrArg (fun t => mul t (f x)) (emission p q x))))

/-- the one-step law, by counting, each pair with the Z coins that recover: for f, 1 at y and 0 elsewhere, Z p[y] of them give y -/
theorem step_law {n : N} (p q f : Fin (s n) → N) (h : Eq (sum (s n) p) (sum (s n) q)) :
    Eq (judged p q (fun x => count (sum (s n) (res p q)) (fun _ => f x))
          (count (sum (s n) (res p q)) (fun u => f (pick (res p q) u))))
      (mul (sum (s n) (res p q)) (sum (s n) (fun x => mul (p x) (f x)))) :=
  Eq.trans (judged_law p q (fun x => count (sum (s n) (res p q)) (fun _ => f x))
      (count (sum (s n) (res p q)) (fun u => f (pick (res p q) u))) h)
    (Eq.trans
      (congr2 add
        (Eq.trans
          (sum_congr (s n) (fun x => mul (acc p q x) (count (sum (s n) (res p q)) (fun _ => f x)))
            (fun x => mul (sum (s n) (res p q)) (mul (acc p q x) (f x)))
            (fun x => Eq.trans (congrArg (mul (acc p q x)) (count_const (sum (s n) (res p q)) (f x)))
              (mul_swap (acc p q x) (sum (s n) (res p q)) (f x))))
          (sum_mul (s n) (sum (s n) (res p q)) (fun x => mul (acc p q x) (f x))))
        (congrArg (mul (sum (s n) (res p q))) (pick_law (res p q) f)))
      (Eq.trans
        (Eq.symm (mul_add (sum (s n) (res p q)) (sum (s n) (fun x => mul (acc p q x) (f x)))
          (sum (s n) (fun x => mul (res p q x) (f x)))))
        (congrArg (mul (sum (s n) (res p q))) (balance p q f))))

/-- Z = 0: no pair is rejected, whatever a rejection would give, and p[y] of them give y -/
theorem step_law_sure {n : N} (p q f : Fin (s n) → N) (b : N) (h : Eq (sum (s n) p) (sum (s n) q))
    (none : Eq (sum (s n) (res p q)) z) : Eq (judged p q f b) (sum (s n) (fun x => mul (p x) (f x))) :=
  Eq.trans (judged_law p q f b h)
    (Eq.trans
      (congrArg (add (sum (s n) (fun x => mul (acc p q x) (f x))))
        (Eq.trans (congrArg (fun t => mul t b) none)
          (Eq.trans (congrArg (fun t => count t (fun u => f (pick (res p q) u))) (Eq.symm none)) (pick_law (res p q) f))))
      (balance p q f))

#print axioms emission
#print axioms rejection_mass
#print axioms pick_law
#print axioms step_law
#print axioms step_law_sure
