create Function f() returns int Language SQL Begin Atomic select 1; select case when true then 2 end; End; select f();
