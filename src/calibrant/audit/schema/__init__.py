"""What a record holds, field by field: what `AuditRecord.from_dict` accepts, and the JSON Schema that is made of it."""
