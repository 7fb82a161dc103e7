/** Sample programs in Go that query a database through database/sql. */

export function goProgram({ driver, module, uri }: { driver: string; module: string; uri: string }): string {
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

export function goQuery(driver: string, uri: string): string {
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
