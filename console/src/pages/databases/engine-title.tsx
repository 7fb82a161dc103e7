/** Display name of an engine; its plain name until the list of engines is loaded. */
import { useQuery } from '@tanstack/react-query';
import { enginesQuery } from './queries/queries.ts';

export function EngineTitle({ engine }: { engine: string }) {
  const { data = [] } = useQuery(enginesQuery);
  return data.find((one) => one.engine === engine)?.title ?? engine;
}
