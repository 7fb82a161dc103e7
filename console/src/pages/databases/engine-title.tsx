/** The name of an engine for humans; its plain one until the cloud has told them. */
import { useQuery } from '@tanstack/react-query';
import { enginesQuery } from './queries.ts';

export function EngineTitle({ engine }: { engine: string }) {
  const { data = [] } = useQuery(enginesQuery);
  return data.find((one) => one.engine === engine)?.title ?? engine;
}
