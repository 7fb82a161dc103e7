/** Sample code that connects to a database, in common languages. */
import type { EngineName } from './engine.ts';
import type { Snippets } from './schema.ts';

export interface Target {
  /** With the password. */
  readonly uri: string;
  readonly password: string;
  readonly tls: boolean;
  /** Whether users get a CA certificate, which they save as CA_FILE. */
  readonly hasCa: boolean;
}

export const CA_FILE = 'ca.pem';

export function snippetsFor(engine: EngineName, target: Target): Snippets {
  return WRITERS[engine](target);
}

const WRITERS: Readonly<Record<EngineName, (target: Target) => Snippets>> = {
  sqlite,
  postgresql,
  mysql,
  mongodb,
};

/** The URL without the password ends with a slash, which some clients require. */
function sqlite({ uri, password }: Target): Snippets {
  const url = uri.slice(0, uri.indexOf('?'));
  const statement = `{"type":"execute","stmt":{"sql":"SELECT 1 AS one"}}`;
  const body = `{"requests":[${statement},{"type":"close"}]}`;
  return {
    cli: `curl '${url}v2/pipeline' -H 'Authorization: Bearer ${password}' -d '${body}'`,
    node: `// npm install @libsql/client
import { createClient } from '@libsql/client';
const client = createClient({ url: '${url}', authToken: '${password}' });
const { rows } = await client.execute('SELECT 1 AS one');
console.log(rows);
`,
    python: `# pip install libsql
import libsql
connection = libsql.connect("${url}", auth_token="${password}")
print(connection.execute("SELECT 1 AS one").fetchall())
`,
    go: goProgram({ driver: 'libsql', module: 'github.com/tursodatabase/libsql-client-go/libsql', uri }),
    php: `<?php
$body = json_encode(['requests' => [
    ['type' => 'execute', 'stmt' => ['sql' => 'SELECT 1 AS one']],
    ['type' => 'close'],
]]);
$answer = file_get_contents('${url}v2/pipeline', false, stream_context_create(['http' => [
    'method' => 'POST',
    'header' => "Authorization: Bearer ${password}\\r\\nContent-Type: application/json",
    'content' => $body,
]]));
print_r(json_decode($answer, true)['results'][0]['response']['result']['rows']);
`,
  };
}

function mysql({ uri, tls, hasCa }: Target): Snippets {
  const ca = hasCa ? CA_FILE : null;
  const { username, password, hostname, port, pathname } = new URL(uri);
  const name = pathname.slice(1);
  const dsn = `mysql:host=${hostname};port=${port};dbname=${name};charset=utf8mb4`;
  const goTls = ca === null ? 'true' : GO_TLS;
  const goUri = `${username}:${password}@tcp(${hostname}:${port})/${name}${tls ? `?tls=${goTls}` : ''}`;
  const login = `--host=${hostname} --port=${port} --user=${username} --password=${password}`;
  return {
    cli: `mariadb ${login}${tls ? mariadbTls(ca) : ''} --execute='SELECT 1 AS one' ${name}`,
    node: `// npm install mysql2
${ca === null ? '' : "import { readFileSync } from 'node:fs';\n"}import { createConnection } from 'mysql2/promise';
const connection = await createConnection(${tls ? `{ uri: '${uri}', ssl: ${nodeTls(ca)} }` : `'${uri}'`});
const [rows] = await connection.query('SELECT 1 AS one');
console.log(rows);
await connection.end();
`,
    python: `# pip install PyMySQL
import pymysql
connection = pymysql.connect(
    host="${hostname}", port=${port}, user="${username}", password="${password}", database="${name}"${tls ? pythonTls(ca) : ''}
)
with connection.cursor() as cursor:
    cursor.execute("SELECT 1 AS one")
    print(cursor.fetchall())
`,
    go:
      ca === null
        ? goProgram({ driver: 'mysql', module: 'github.com/go-sql-driver/mysql', uri: goUri })
        : goMysqlTls(goUri, ca),
    php: `<?php
$connection = new PDO('${dsn}', '${username}', '${password}'${ca === null ? '' : `, [PDO::MYSQL_ATTR_SSL_CA => '${ca}']`});
print_r($connection->query('SELECT 1 AS one')->fetchAll(PDO::FETCH_ASSOC));
`,
  };
}

/** The name by which the driver knows whom to trust. */
const GO_TLS = 'cloudlet';

function goMysqlTls(uri: string, ca: string): string {
  return `package main

import (
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"fmt"
	"log"
	"os"

	"github.com/go-sql-driver/mysql"
)

func main() {
	ca, err := os.ReadFile("${ca}")
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	if err := mysql.RegisterTLSConfig("${GO_TLS}", &tls.Config{RootCAs: roots}); err != nil {
		log.Fatal(err)
	}
	${goQuery('mysql', uri)}
}
`;
}

function mariadbTls(ca: string | null): string {
  return `${ca === null ? '' : ` --ssl-ca=${ca}`} --ssl-verify-server-cert`;
}

function nodeTls(ca: string | null): string {
  return ca === null ? '{}' : `{ ca: readFileSync('${ca}') }`;
}

function pythonTls(ca: string | null): string {
  return ca === null ? ',\n    ssl_verify_cert=True' : `,\n    ssl_ca="${ca}"`;
}

function postgresql({ uri, tls }: Target): Snippets {
  return {
    cli: `psql '${uri}' -c 'SELECT 1 AS one'`,
    node: `// npm install pg
import pg from 'pg';
const client = new pg.Client({ connectionString: '${uri}' });
await client.connect();
const { rows } = await client.query('SELECT 1 AS one');
console.log(rows);
await client.end();
`,
    python: `# pip install "psycopg[binary]"
import psycopg
with psycopg.connect("${uri}") as connection:
    print(connection.execute("SELECT 1 AS one").fetchall())
`,
    go: goProgram({ driver: 'pgx', module: 'github.com/jackc/pgx/v5/stdlib', uri }),
    php: `<?php
$url = parse_url('${uri}');
$dsn = "pgsql:host={$url['host']};port={$url['port']};dbname=" . ltrim($url['path'], '/');${tls ? "\n$dsn .= ';' . str_replace('&', ';', $url['query']);" : ''}
$connection = new PDO($dsn, $url['user'], $url['pass']);
print_r($connection->query('SELECT 1 AS one')->fetchAll(PDO::FETCH_ASSOC));
`,
  };
}

function mongodb({ uri }: Target): Snippets {
  return {
    cli: `mongosh '${uri}' --eval 'db.runCommand({ ping: 1 })'`,
    node: `// npm install mongodb
import { MongoClient } from 'mongodb';
const client = new MongoClient('${uri}');
const orders = client.db().collection('orders');
await orders.insertOne({ what: 'tea' });
console.log(await orders.find({ what: 'tea' }).toArray());
await client.close();
`,
    python: `# pip install pymongo
from pymongo import MongoClient
client = MongoClient("${uri}")
orders = client.get_default_database()["orders"]
orders.insert_one({"what": "tea"})
print(list(orders.find({"what": "tea"})))
`,
    go: `package main

import (
	"context"
	"fmt"
	"log"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

func main() {
	ctx := context.Background()
	client, err := mongo.Connect(options.Client().ApplyURI("${uri}"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Disconnect(ctx)
	orders := client.Database("${new URL(uri).pathname.slice(1)}").Collection("orders")
	if _, err := orders.InsertOne(ctx, bson.M{"what": "tea"}); err != nil {
		log.Fatal(err)
	}
	var found bson.M
	if err := orders.FindOne(ctx, bson.M{"what": "tea"}).Decode(&found); err != nil {
		log.Fatal(err)
	}
	fmt.Println(found)
}
`,
    php: `<?php // composer require mongodb/mongodb
require 'vendor/autoload.php';
$client = new MongoDB\\Client('${uri}');
$orders = $client->selectCollection('${new URL(uri).pathname.slice(1)}', 'orders');
$orders->insertOne(['what' => 'tea']);
print_r($orders->find(['what' => 'tea'])->toArray());
`,
  };
}

function goProgram({ driver, module, uri }: { driver: string; module: string; uri: string }): string {
  return `package main

import (
	"database/sql"
	"fmt"
	"log"

	_ "${module}"
)

func main() {
	${goQuery(driver, uri)}
}
`;
}

function goQuery(driver: string, uri: string): string {
  return `db, err := sql.Open("${driver}", "${uri}")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	var one int
	if err := db.QueryRow("SELECT 1 AS one").Scan(&one); err != nil {
		log.Fatal(err)
	}
	fmt.Println(one)`;
}
