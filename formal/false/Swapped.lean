
-- False: max(q - p, 0) in place of max(p - q, 0).
-- rejected: type mismatch|Type mismatch
theorem swapped (p q : N) : Eq (add (min p q) (sub q p)) p := min_add_sub p q
