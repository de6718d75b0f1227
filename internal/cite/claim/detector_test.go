package claim

import (
	"strings"
	"testing"
)

// pairOf reads a claim and the sentences of a source, of which each line is one.
func pairOf(claim, source string) *Pair {
	p := &Pair{Claim: Read(claim, nil)}
	for line := range strings.SplitSeq(source, "\n") {
		p.Quote = append(p.Quote, Read(line, nil))
	}
	p.Page = p.Quote
	p.Coverage()
	return p
}

// TestDetectors has for each detector claims that it must find and, behind them, claims that it must not.
func TestDetectors(t *testing.T) {
	for name, c := range map[string][]struct{ source, wrong, right string }{
		"negated": {
			{"The drug did not help patients.", "The drug helped patients.", "The drug did not help the patients."},
			{"滤芯不可水洗。", "滤芯可以用水清洗。", "滤芯不能水洗。"},
			{"The fox does not dig dens of its own.", "The fox digs dens of its own.", "Rather than digging dens, the fox takes those of others."},
			{"Boats are banned, except for those of the police.", "Boats are welcome there.", "Only the police have boats."},
			{"孕妇禁用。", "孕妇可以服用。", "孕妇不得服用。"},
			{"创办人并非知府李元，而是盐商。", "创办人是知府李元。", "创办人是盐商。"},
		},
		"silent": {
			{"The drug helped patients.", "The drug did not help patients.", "The drug helped patients."},
			{"药物影响心率。", "药物没有影响心率。", "药物影响了心率。"},
		},
		"turned": {
			{"Rainfall fell by 22 percent.", "Rainfall rose by 22 percent.", "Rainfall decreased by 22 percent."},
			{"The study found no change in snowfall.", "Snowfall declined sharply.", "Snowfall did not change."},
			{"产量增加了三成。", "产量减少了三成。", "产量提高了三成。"},
			{"El consumo bajó un 12 por ciento.", "El consumo subió un 12 por ciento.", "El consumo cayó un 12 por ciento."},
			{"Der Umsatz stieg stark.", "Der Umsatz sank stark.", "Der Umsatz wuchs stark."},
			{"Le prix a augmenté de moitié.", "Le prix a baissé de moitié.", "Le prix a grimpé de moitié."},
			{"表带偏硬。", "表带偏软。", "表带较硬。"},
			{"比上代少2天。", "比上代多2天。", "比上代少了2天。"},
			{"Public wages rise faster than private ones.", "Public wages rise more slowly than private ones.", "Private wages rise more slowly than public ones."},
		},
		"posted": {
			{"The captain is Ewan Baird and the engineer is Isla Gunn.", "The captain of the Marla is Isla Gunn.", "The captain of the Marla is Ewan Baird."},
			{"The captain is Ewan Baird and the engineer is Isla Gunn.", "Ewan Baird is the engineer.", "Isla Gunn is the engineer."},
			{"The mayor was Ruth Marsh and her deputy was Piet Olsen.", "The mayor was Piet Olsen.", "The deputy of the mayor was Piet Olsen."},
		},
		"bounded": {
			{"More than 300 boats came.", "Fewer than 300 boats came.", "More than 300 boats came."},
			{"学生四百多人。", "学生不到四百人。", "学生超过四百人。"},
		},
		"kinds": {
			{"The door was painted red.", "The door was painted blue.", "The door was painted red."},
			{"A few of its designs are made by hand.", "All of its designs are made by hand.", "Some of its designs are made by hand."},
			{"铜钟铸于明代。", "铜钟铸于清代。", "铜钟铸于明朝。"},
		},
		"quantified": {
			{"About two thirds of the wells have been deepened.", "All wells have been deepened.", "Most of the wells have been deepened."},
			{"八成以上的树苗成活。", "所有树苗都成活了。", "多数树苗成活。"},
		},
		"heard": {
			{"Police suspect that a guard opened the door.", "A guard opened the door.", "Police suspect a guard opened the door."},
			{"据传他卖掉了画。", "他卖掉了画。", "据说他卖掉了画。"},
			{"The tower may have burned down.", "The tower burned down.", "The tower could have burned down."},
			{"据推测该蜂随木材传入。", "该蜂随木材传入。", "该蜂可能随木材传入。"},
		},
		"unreal": {
			{"The team wants to repeat the study.", "The team has repeated the study.", "The team plans to repeat the study."},
			{"二期工程计划于2027年动工。", "二期工程已于2027年动工。", "二期工程拟于2027年动工。"},
			{"The team expects the stock to recover.", "The stock has recovered.", "The team expects a recovery of the stock."},
		},
		"held": {
			{"It went on sale in Europe in March 2022 and reached Canada in September 2022.", "It became available in Canada in March 2022.", "It became available in Canada in September 2022."},
			{"Councillor Amina Doyle cut the ribbon, while the engineer Peter Vance gave a short tour to residents.", "Amina Doyle gave residents a short tour.", "Peter Vance gave residents a short tour."},
			{"净化器于2023年8月上市。\n2024年1月，厂家推出了白色版本。", "净化器于2024年1月上市。", "净化器于2023年8月上市。"},
			{"The most common effects were drowsiness (14%) and dry mouth (9%).", "Dry mouth was the most common effect, with 14%.", "Dry mouth was an effect, with 9%."},
		},
		"slotted": {
			{"工程由中晟集团承建，信号系统则由华讯科技提供。", "线路的信号系统由中晟集团提供。", "线路的信号系统由华讯科技提供。"},
			{"首批产品只在华东地区销售。", "首批产品在全国销售。", "首批产品在华东地区销售。"},
			{"抗战爆发后，全家迁居重庆。", "抗战爆发后，全家迁居昆明。", "抗战爆发后，全家迁居重庆。"},
			{"沈砚秋，画家，早年在杭州师从林仲甫学习山水。", "林仲甫早年在杭州师从沈砚秋学习山水。", "沈砚秋早年在杭州师从林仲甫学习山水。"},
		},
		"renamed": {
			{"馆长周文岚表示，展览延期。", "馆长周文澜表示展览延期。", "周文岚说展览要延期。"},
			{"领航员罗逸舟获救。", "领航员罗亦舟获救。", "领航员罗逸舟已经获救。"},
			{"该方法等待时间长，医生任务重。", "医生任务多，等待时间久。", "等待时间长。"},
			{"冠军是选手高晓琪，亚军是选手高晓棋。", "亚军是选手高小棋。", "选手高晓棋获得亚军。"},
		},
		"swapped": {
			{"Ida Berg beat Lotte Dahl.", "Lotte Dahl beat Ida Berg.", "Lotte Dahl was beaten by Ida Berg."},
			{"Females are slightly heavier than males.", "Male foxes are heavier than females.", "Males are lighter than females."},
			{"Since April the line has been operated by Civica, which took over from Northway.", "In April, Northway took over the line from Civica.", "In April, Civica took over the line from Northway."},
			{"海陵女排以三比二险胜北辰队。", "北辰队以三比二险胜海陵女排。", "海陵女排险胜北辰队。"},
		},
		"added": {
			{"The east gallery closed in January.", "The east gallery closed in January so that its roof could be repaired.", "The east gallery closed in January."},
			{"镇上五年内不再新建酒店。", "因为游客太多，镇上五年内不再新建酒店。", "镇上五年内不会新建酒店。"},
		},
	} {
		d := detector(t, name)
		for _, pair := range c {
			if _, found := d.Find(pairOf(pair.wrong, pair.source)); !found {
				t.Errorf("%s does not find %q, where the source says %q", name, pair.wrong, pair.source)
			}
			if what, found := d.Find(pairOf(pair.right, pair.source)); found {
				t.Errorf("%s finds %q in %q, where the source says %q", name, what, pair.right, pair.source)
			}
		}
	}
}

func detector(t *testing.T, name string) Detector {
	t.Helper()
	for _, d := range Detectors {
		if d.Name == name {
			return d
		}
	}
	t.Fatalf("there is no detector %q", name)
	return Detector{}
}

func TestCoverage(t *testing.T) {
	for _, c := range []struct {
		claim, source string
		least, most   float64
	}{
		{"The tower is 31 metres high.", "Its tower is 31 metres high.", 1, 1},
		{"The race took 270 minutes.", "The race took four and a half hours.", 0.7, 1},
		{"The tower is 31 metres high.", "The ferry was late.", 0, 0},
		{"塔高三十一米。", "灯塔高31米。", 1, 1},
		{"目前有学生一千人。", "湖中没有鱼。", 0, 0.2},
	} {
		if got := pairOf(c.claim, c.source).Coverage(); got < c.least || got > c.most {
			t.Errorf("%s: %q says %.2f of it, want %.2f to %.2f", c.claim, c.source, got, c.least, c.most)
		}
	}
}
