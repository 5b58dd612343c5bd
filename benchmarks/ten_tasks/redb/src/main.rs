// Reads and writes random keys of a redb database: redb-bench FOLDER SECONDS KEYS --knob=value...
// SECONDS 0 creates the database with all keys.
use redb::{Database, Durability, ReadableDatabase, TableDefinition};
use std::{collections::HashMap, env, error::Error, time::Instant};

const TABLE: TableDefinition<u64, &[u8]> = TableDefinition::new("rows");

fn show(second: &str, op: &str, times: &mut [f64]) {
    times.sort_by(f64::total_cmp);
    let n = times.len();
    if n == 0 {
        return println!("{second},{op},0,0,,,,,");
    }
    let at = |share: f64| times[(share * n as f64) as usize];
    let mean = times.iter().sum::<f64>() / n as f64;
    println!("{second},{op},{n},0,{mean:.1},{:.1},{:.1},{:.1},{:.1}", at(0.5), at(0.95), at(0.99), times[n - 1]);
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if arguments[0] == "--version" {
        println!("redb 4.6.0");
        return Ok(());
    }
    let (folder, seconds, keys): (_, f64, u64) = (&arguments[0], arguments[1].parse()?, arguments[2].parse()?);
    let knobs: HashMap<&str, &str> = arguments[3..].iter().filter_map(|a| a.strip_prefix("--")?.split_once('=')).collect();
    let is_on = |name: &str| knobs.get(name) == Some(&"true");
    let mut builder = Database::builder();
    if let Some(bytes) = knobs.get("cache_size") {
        builder.set_cache_size(bytes.parse()?);
    }
    let db = builder.create(format!("{folder}/data.redb"))?;
    if seconds == 0.0 {
        let transaction = db.begin_write()?;
        {
            let mut table = transaction.open_table(TABLE)?;
            for key in 0..keys {
                table.insert(key, vec![1u8; 500].as_slice())?;
            }
        }
        transaction.commit()?;
        return Ok(());
    }
    println!("second,op,operations,errors,mean_us,p50_us,p95_us,p99_us,max_us");
    let mut random: u64 = 88172645463325252;
    let (mut every, mut own) = ([vec![], vec![]], [vec![], vec![]]);
    let (mut second, begin) = (1.0, Instant::now());
    while begin.elapsed().as_secs_f64() < seconds {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let (key, writes) = (random % keys, random >> 63 == 1);
        let before = Instant::now();
        if writes {
            let mut transaction = db.begin_write()?;
            if knobs.get("durability") == Some(&"none") {
                transaction.set_durability(Durability::None)?;
            }
            transaction.set_two_phase_commit(is_on("two_phase_commit"));
            transaction.set_quick_repair(is_on("quick_repair"));
            transaction.open_table(TABLE)?.insert(key, vec![2u8; 500].as_slice())?;
            transaction.commit()?;
        } else {
            assert!(db.begin_read()?.open_table(TABLE)?.get(key)?.is_some());
        }
        own[usize::from(writes)].push(before.elapsed().as_secs_f64() * 1e6);
        let passed = begin.elapsed().as_secs_f64();
        if passed >= second || passed >= seconds {
            for (kind, op) in ["read", "write"].iter().enumerate() {
                every[kind].extend(&own[kind]);
                show(&format!("{passed:.3}"), op, &mut own[kind]);
                own[kind].clear();
            }
            second += 1.0;
        }
    }
    for (kind, op) in ["read", "write"].iter().enumerate() {
        show("total", op, &mut every[kind]);
    }
    Ok(())
}
