/** Sample code that connects to a MongoDB database. */
import type { FrameworkSnippet, Snippets, SnippetTarget } from '../../../databases/engine-description.ts';

export function mongodbSnippets({ uri }: SnippetTarget): Snippets {
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

export function mongoose({ uri }: SnippetTarget): FrameworkSnippet {
  return {
    framework: 'mongoose',
    file: 'db.mjs',
    code: `// npm install mongoose
import mongoose from 'mongoose';
await mongoose.connect('${uri}');
const Order = mongoose.model('Order', new mongoose.Schema({ what: String }));
await Order.create({ what: 'tea' });
console.log(await Order.countDocuments({ what: 'tea' }));
await mongoose.disconnect();
`,
  };
}
