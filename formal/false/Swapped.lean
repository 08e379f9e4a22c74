
-- False: the residual of the wrong side.
-- Rejected: but is expected to have type Eq ((acc p q x).add (res q p x)) (p x)
theorem swapped {n : N} (p q : Fin n → N) (x : Fin n) : Eq (add (acc p q x) (res q p x)) (p x) := emission p q x
