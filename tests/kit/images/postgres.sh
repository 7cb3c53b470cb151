# POSTGRES_USER, POSTGRES_PASSWORD and POSTGRES_DB, as the public image takes them.
set -eu
bin=/usr/lib/postgresql/15/bin
data=/var/lib/postgresql/data
install -d -o postgres -m 700 "$data"
printf '%s\n' "$POSTGRES_PASSWORD" > /tmp/password
chown postgres /tmp/password
runuser -u postgres -- "$bin/initdb" -D "$data" -U "$POSTGRES_USER" --pwfile=/tmp/password --auth=scram-sha-256 \
  --encoding=UTF8 --locale=C.UTF-8 --no-sync
rm /tmp/password
echo "CREATE DATABASE \"$POSTGRES_DB\"" | runuser -u postgres -- "$bin/postgres" --single -D "$data" postgres
echo 'host all all all scram-sha-256' >> "$data/pg_hba.conf"
exec runuser -u postgres -- "$bin/postgres" -D "$data" -c listen_addresses='*' -c unix_socket_directories=/tmp
