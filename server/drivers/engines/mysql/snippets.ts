/** Sample code that connects to a MySQL database. */
import { CA_FILE, type Snippets, type SnippetTarget } from '../../../databases/engine-description.ts';
import { goProgram, goQuery } from '../shared/go-program.ts';

export function mysqlSnippets({ uri, tls, hasCa }: SnippetTarget): Snippets {
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

/** The name of the driver's TLS configuration. */
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
