-- The database of the nodes: psql -h 10.0.1.1,10.0.1.2,10.0.1.3 -U postgres -f database.sql
CREATE ROLE signalbox LOGIN PASSWORD '{database password}';
CREATE DATABASE signalbox OWNER signalbox ENCODING 'UTF8' TEMPLATE template0;
