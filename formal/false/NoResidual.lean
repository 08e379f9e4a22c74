
-- False: nothing is ever rejected.
-- rejected: type mismatch|Type mismatch
theorem never {n : N} (p q : Fin n → N) : Eq (sum n (res p q)) z := Eq.refl z
