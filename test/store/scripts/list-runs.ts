// Prints what listRuns says about a home; run as another user it meets files that it may not read.
import { listRuns } from '../../../src/store/listing.ts';

process.stdout.write(JSON.stringify(await listRuns(process.argv[2] ?? '')));
