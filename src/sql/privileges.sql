-- PUBLIC can do nothing; the operator of the database grants what each role needs.

REVOKE ALL ON SCHEMA admission FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA admission FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA admission FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA admission FROM PUBLIC;
