# MYSQL_ROOT_PASSWORD and MYSQL_DATABASE, as the public image takes them.
set -eu
mariadb-install-db --user=mysql --auth-root-authentication-method=normal > /dev/null
cat > /tmp/init.sql <<SQL
CREATE DATABASE IF NOT EXISTS \`$MYSQL_DATABASE\`;
ALTER USER root@localhost IDENTIFIED BY '$MYSQL_ROOT_PASSWORD';
CREATE USER root@'%' IDENTIFIED BY '$MYSQL_ROOT_PASSWORD';
GRANT ALL PRIVILEGES ON *.* TO root@'%' WITH GRANT OPTION;
SQL
chown mysql /tmp/init.sql
# The public image starts the server twice, and testcontainers waits for the second time.
echo 'mariadb-install-db: ready for connections.' >&2
exec mariadbd --user=mysql --bind-address=0.0.0.0 --skip-name-resolve --socket=/tmp/mysqld.sock --pid-file=/tmp/mysqld.pid \
  --init-file=/tmp/init.sql
