"""Operations for administrators, with their access checks; the audit log."""
