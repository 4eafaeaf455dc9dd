-- migrate: no-transaction
-- 0002_person_full_name.sql: schema 1 of contacts.person has fullName in place of firstName and lastName.
-- Locks: the rows of a batch's players. Older daemons: not affected; older apps meet states without the two names.

CREATE FUNCTION person_full_name(state json) RETURNS json
LANGUAGE sql STABLE PARALLEL SAFE AS $person$
    SELECT CASE
           WHEN json_typeof(state) <> 'object' THEN NULL
           WHEN json_typeof(state -> 'firstName') = 'string' AND json_typeof(state -> 'lastName') = 'string' THEN
               state_with(state_without(state, 'firstName', 'lastName'), 'fullName',
                          to_json(concat_ws(' ', nullif(state ->> 'firstName', ''), nullif(state ->> 'lastName', ''))))
           END
$person$;
COMMENT ON FUNCTION person_full_name(json) IS
    'A person with fullName, joined from firstName and lastName by a space; an empty one leaves no space. NULL where they are not both strings.';

CALL migrate_states('contacts.person', 1, 'person_full_name(json)');
