
-- False, offered by computation: min(1, 2) + (2 - 1) = 1.
-- rejected: type mismatch|Type mismatch
theorem computed : Eq (add (min (s z) (s (s z))) (sub (s (s z)) (s z))) (s z) := Eq.refl (s z)
