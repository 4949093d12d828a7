"""Operations for administrators, each with its right checked; the audit log."""
