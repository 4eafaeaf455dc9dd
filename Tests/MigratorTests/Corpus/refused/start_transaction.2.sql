SELECT 1;
start transaction isolation level serializable;
