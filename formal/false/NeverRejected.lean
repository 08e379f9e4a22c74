
-- False: nothing is ever rejected.
-- Rejected: but is expected to have type Eq (sum n (res p q)) z
theorem never {n : N} (p q : Fin n → N) : Eq (sum n (res p q)) z := Eq.refl z
