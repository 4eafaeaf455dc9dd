-- migrate: no-transaction
-- 0003_person_main_phone_number.sql: schema 1 of phonebook.person has mainPhoneNumber beside phoneNumberList.
-- Locks: the rows of a batch's players. Older daemons: not affected; older apps keep the key that they do not know.

CREATE FUNCTION person_main_phone_number(state json) RETURNS json
LANGUAGE sql STABLE PARALLEL SAFE AS $person$
    SELECT CASE
           WHEN json_typeof(state) <> 'object' THEN NULL
           WHEN json_typeof(state -> 'phoneNumberList') <> 'array' THEN NULL
           WHEN json_typeof(state -> 'phoneNumberList' -> 0) <> 'string' THEN NULL
           ELSE state_with(state, 'mainPhoneNumber', coalesce(state -> 'phoneNumberList' -> 0, '""'))
           END
$person$;
COMMENT ON FUNCTION person_main_phone_number(json) IS
    'A person with mainPhoneNumber: the first of phoneNumberList, or "" where it is empty or missing. NULL where it is no list of strings.';

CALL migrate_states('phonebook.person', 1, 'person_main_phone_number(json)');
